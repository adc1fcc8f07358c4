package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota + 1
	tokName
	tokQuotedName
	tokString
	tokNumber
	tokHex
	tokEqual
	tokNotEqual
	tokLess
	tokLessOrEqual
	tokGreater
	tokGreaterOrEqual
	tokGlob
	tokNotGlob
	tokAnd
	tokOr
	tokNot  // the word
	tokBang // the sign, which cannot stand before "in"
	tokIn
	tokStar
	tokOpen
	tokClose
	tokComma
)

// token is one word of a query. Its source text is src[start:end].
type token struct {
	kind       tokenKind
	start, end int
	text       string // decoded, of names, keywords, strings and hexadecimal literals
	number     uint64 // of numbers
}

// lexer cuts a query into tokens, one at a time. The source is UTF-8.
type lexer struct {
	src string
	pos int
}

func (l *lexer) fail(offset int, message, expected string) error {
	return syntaxError(l.src, offset, message, expected)
}

func (l *lexer) peek() (rune, int) { return utf8.DecodeRuneInString(l.src[l.pos:]) }

// skip advances over the characters that satisfy f.
func (l *lexer) skip(f func(rune) bool) {
	for l.pos < len(l.src) {
		c, n := l.peek()
		if !f(c) {
			return
		}
		l.pos += n
	}
}

// next returns the next token; at the end of the source always tokEnd.
func (l *lexer) next() (tok token, err error) {
	l.skip(unicode.IsSpace)
	tok = token{kind: tokEnd, start: l.pos}
	if l.pos < len(l.src) {
		switch c, _ := l.peek(); {
		case isNameStart(c):
			l.name(&tok)
		case '0' <= c && c <= '9':
			err = l.number(&tok)
		case c == '"':
			err = l.str(&tok)
		case c == '`':
			err = l.quotedName(&tok)
		default:
			err = l.symbol(&tok)
		}
	}
	tok.end = l.pos
	return tok, err
}

func (l *lexer) name(tok *token) {
	_, n := l.peek()
	l.pos += n
	l.skip(isNamePart)
	tok.kind, tok.text = tokName, l.src[tok.start:l.pos]
	if kind := keyword(tok.text); kind != 0 {
		tok.kind = kind
	}
}

// keyword returns the kind of a keyword, in any case, else 0.
func keyword(s string) tokenKind {
	switch strings.ToLower(s) {
	case "and":
		return tokAnd
	case "or":
		return tokOr
	case "not":
		return tokNot
	case "in":
		return tokIn
	case "glob":
		return tokGlob
	}
	return 0
}

// isWord tells a keyword from the sign that has the same meaning.
func (t token) isWord() bool { return keyword(t.text) == t.kind }

func (l *lexer) number(tok *token) error {
	l.skip(isNamePart)
	text := l.src[tok.start:l.pos]
	if len(text) > 1 && text[0] == '0' && text[1]|0x20 == 'x' {
		return l.hex(tok, text[2:])
	}
	tok.kind = tokNumber
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err == nil:
		tok.number = n
		return nil
	case strings.Trim(text, "0123456789") == "":
		return l.fail(tok.start, "number "+clip(text)+" is too large", "at most 18446744073709551615")
	}
	return l.fail(tok.start, fmt.Sprintf("malformed number %q", clip(text)), "decimal digits only")
}

func (l *lexer) hex(tok *token, digits string) error {
	for i, c := range digits {
		if !isHexDigit(c) {
			return l.fail(tok.start+2+i, fmt.Sprintf("unexpected %q in a hexadecimal literal", string(c)), "0-9 or a-f")
		}
	}
	if !isHexLength(len(digits)) {
		return l.fail(tok.start, fmt.Sprintf("hexadecimal literal of %d digits", len(digits)),
			"40 for an address or 64 for a key")
	}
	tok.kind, tok.text = tokHex, "0x"+strings.ToLower(digits)
	return nil
}

// symbols in the order of matching: longer ones before their prefixes.
var symbols = []struct {
	text string
	kind tokenKind
}{
	{"&&", tokAnd}, {"||", tokOr},
	{"!=", tokNotEqual}, {"!~", tokNotGlob}, {"!", tokBang},
	{"<=", tokLessOrEqual}, {"<", tokLess},
	{">=", tokGreaterOrEqual}, {">", tokGreater},
	{"=", tokEqual}, {"~", tokGlob}, {"*", tokStar},
	{"(", tokOpen}, {")", tokClose}, {",", tokComma},
}

// mistakes are signs of other languages. None of them can begin a valid sequence of ours.
var mistakes = []struct{ text, expected string }{
	{"==", `"="`}, {"=~", `"~"`}, {"=>", `">="`}, {"=<", `"<="`}, {"<>", `"!="`},
	{"'", "strings in double quotes"}, {"-", "numbers without a sign"},
}

func (l *lexer) symbol(tok *token) error {
	rest := l.src[l.pos:]
	for _, m := range mistakes {
		if strings.HasPrefix(rest, m.text) {
			return l.fail(tok.start, fmt.Sprintf("unexpected %q", m.text), m.expected)
		}
	}
	for _, s := range symbols {
		if strings.HasPrefix(rest, s.text) {
			tok.kind = s.kind
			l.pos += len(s.text)
			return nil
		}
	}
	c, _ := l.peek()
	expected := ""
	if c == '&' || c == '|' {
		expected = strconv.Quote(string(c) + string(c))
	}
	return l.fail(tok.start, fmt.Sprintf("unexpected %q", string(c)), expected)
}
