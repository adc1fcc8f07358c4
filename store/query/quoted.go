package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quotedName reads a name in backticks. A doubled backtick stands for one;
// everything else for itself.
func (l *lexer) quotedName(tok *token) error {
	tok.kind = tokQuotedName
	l.pos++
	var b strings.Builder
	for {
		n := strings.IndexByte(l.src[l.pos:], '`')
		if n < 0 {
			return l.fail(tok.start, "name without an end", "a closing backtick")
		}
		b.WriteString(l.src[l.pos : l.pos+n])
		l.pos += n + 1
		if !strings.HasPrefix(l.src[l.pos:], "`") {
			tok.text = b.String()
			return nil
		}
		b.WriteByte('`')
		l.pos++
	}
}

// str reads a string in double quotes.
func (l *lexer) str(tok *token) error {
	tok.kind = tokString
	l.pos++
	var b strings.Builder
	for {
		n := strings.IndexAny(l.src[l.pos:], `"\`)
		if n < 0 {
			return l.fail(tok.start, "string without an end", "a closing double quote")
		}
		b.WriteString(l.src[l.pos : l.pos+n])
		l.pos += n
		if l.src[l.pos] == '"' {
			l.pos++
			tok.text = b.String()
			return nil
		}
		c, err := l.escape()
		if err != nil {
			return err
		}
		b.WriteRune(c)
	}
}

const escapes = `\", \\, \n, \r, \t, \0, \uXXXX or \u{X…}`

// escape reads one escape sequence, beginning at its backslash.
func (l *lexer) escape() (rune, error) {
	start := l.pos
	l.pos++
	c, n := l.peek()
	l.pos += n
	switch c {
	case '"', '\\':
		return c, nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case '0':
		return 0, nil
	case 'u':
		return l.codePoint(start)
	}
	return 0, l.fail(start, fmt.Sprintf("unknown escape %q", l.src[start:l.pos]), escapes)
}

// codePoint reads what follows \u.
func (l *lexer) codePoint(start int) (rune, error) {
	var digits string
	rest := l.src[l.pos:]
	if strings.HasPrefix(rest, "{") {
		end := strings.IndexByte(rest[:min(len(rest), len("{10FFFF}"))], '}')
		if end < 0 {
			return 0, l.fail(start, `malformed escape`, `\u{, one to six hexadecimal digits, }`)
		}
		digits = rest[1:end]
		l.pos += end + 1
	} else {
		digits = rest[:min(len(rest), 4)]
		l.pos += len(digits)
		if len(digits) < 4 {
			digits = ""
		}
	}
	if digits == "" || !isHex(digits) {
		return 0, l.fail(start, "malformed escape", `\u and four hexadecimal digits, or \u{X…}`)
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, l.fail(start, fmt.Sprintf("escape %s is no Unicode character", l.src[start:l.pos]), "")
	}
	return rune(n), nil
}
