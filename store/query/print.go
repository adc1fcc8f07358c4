package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varvedb/varve/store/entity"
)

// Printing puts an And or Or inside another And or Or in parentheses, even if
// precedence makes them unnecessary, and the term of a Not unless it is a Not
// or All. Thus Parse restores the same grouping, and the nesting in the text
// never exceeds the height of the tree. A tree that does not pass Check is
// printed too, for messages.

// String returns "*".
func (e All) String() string { return string(appendExpr(nil, e)) }

// String prints the terms with "&&" between them.
func (e And) String() string { return string(appendExpr(nil, e)) }

// String prints the terms with "||" between them.
func (e Or) String() string { return string(appendExpr(nil, e)) }

// String prints "!" and the term.
func (e Not) String() string { return string(appendExpr(nil, e)) }

// String prints name, operator and literal.
func (e Compare) String() string { return string(appendExpr(nil, e)) }

// String prints name, operator and the pattern in double quotes.
func (e Glob) String() string { return string(appendExpr(nil, e)) }

// String prints name, operator and the list, without commas.
func (e In) String() string { return string(appendExpr(nil, e)) }

// String prints the literal: a number in decimal, text that is an address or a
// key in lower case as it is, other text in double quotes.
func (v Value) String() string { return string(appendValue(nil, v)) }

var compareOps = [...]string{
	Equal: "=", NotEqual: "!=", Less: "<", LessOrEqual: "<=", Greater: ">", GreaterOrEqual: ">=",
}

// String returns the operator as it is written in a query.
func (op CompareOp) String() string {
	if op < Equal || op > GreaterOrEqual {
		return fmt.Sprintf("operator(%d)", uint8(op))
	}
	return compareOps[op]
}

func appendExpr(b []byte, e Expr) []byte {
	switch e := e.(type) {
	case All:
		return append(b, '*')
	case And:
		return appendTerms(b, e.Terms, " && ")
	case Or:
		return appendTerms(b, e.Terms, " || ")
	case Not:
		return appendNegated(append(b, '!'), e.Term)
	case Compare:
		b = appendName(b, e.Name)
		b = append(append(append(b, ' '), e.Op.String()...), ' ')
		return appendValue(b, e.Value)
	case Glob:
		b = appendName(b, e.Name)
		b = append(b, pick(e.Negated, " !~ ", " ~ ")...)
		return appendText(b, e.Pattern)
	case In:
		b = appendName(b, e.Name)
		b = append(b, pick(e.Negated, " not in (", " in (")...)
		return append(appendList(b, e.Values), ')')
	}
	return fmt.Appendf(b, "<%T>", e)
}

func pick(negated bool, yes, no string) string {
	if negated {
		return yes
	}
	return no
}

func appendTerms(b []byte, terms []Expr, op string) []byte {
	for i, term := range terms {
		if i > 0 {
			b = append(b, op...)
		}
		switch term.(type) {
		case And, Or:
			b = append(appendExpr(append(b, '('), term), ')')
		default:
			b = appendExpr(b, term)
		}
	}
	return b
}

func appendNegated(b []byte, term Expr) []byte {
	switch term.(type) {
	case Not, All:
		return appendExpr(b, term)
	}
	return append(appendExpr(append(b, '('), term), ')')
}

// appendList leaves out the commas, as Arkiv's queries do, so that a long list
// is printed no longer than it was written.
func appendList(b []byte, values []Value) []byte {
	for i, v := range values {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendValue(b, v)
	}
	return b
}

func appendName(b []byte, name string) []byte {
	if isPlainName(name) {
		return append(b, name...)
	}
	b = append(b, '`')
	b = append(b, strings.ReplaceAll(name, "`", "``")...)
	return append(b, '`')
}

func appendValue(b []byte, v Value) []byte {
	switch {
	case v.Kind == entity.Numeric:
		return strconv.AppendUint(b, v.Number, 10)
	case isHexLiteral(v.Text):
		return append(b, v.Text...)
	}
	return appendText(b, v.Text)
}

// appendText prints a string on a single line: characters that are not
// printable are escaped.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == 0:
			b = append(b, `\0`...)
		case unicode.IsPrint(c):
			b = append(b, string(c)...)
		default:
			b = fmt.Appendf(b, `\u{%X}`, c)
		}
	}
	return append(b, '"')
}

// quotedName parses a name in backticks. A doubled backtick stands for one; all
// other characters for themselves.
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

// str parses a string in double quotes.
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

// escape parses one escape sequence, beginning at its backslash.
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

// codePoint parses the digits after \u.
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
