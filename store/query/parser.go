package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse parses a query. The resulting tree passes Check. The error is a
// *SyntaxError, which wraps ErrSyntax and has line, column and the expected
// token; exceeding a limit of this package is such an error too.
func Parse(src string) (Expr, error) {
	if err := checkSource(src); err != nil {
		return nil, err
	}
	p := parser{lex: lexer{src: src}}
	p.advance()
	if p.tok.kind == tokEnd {
		p.fail(p.tok, "empty query", "an expression (* selects every entity)")
	}
	tree := p.or()
	if p.tok.kind != tokEnd {
		p.unexpected(`"&&", "||" or the end of the query`)
	}
	if p.err != nil {
		return nil, p.err
	}
	if n := printedLength(tree.expr, len(src)); n > MaxLength {
		return nil, syntaxError(src, 0,
			fmt.Sprintf("query of %d bytes when printed, at most %d are allowed", n, MaxLength), "")
	}
	return tree.expr, nil
}

func checkSource(src string) error {
	if len(src) > MaxLength {
		return syntaxError(src, 0, fmt.Sprintf("query of %d bytes, at most %d are allowed", len(src), MaxLength), "")
	}
	if utf8.ValidString(src) {
		return nil
	}
	for i, c := range src {
		if _, n := utf8.DecodeRuneInString(src[i:]); c == utf8.RuneError && n == 1 {
			return syntaxError(src, i, fmt.Sprintf("byte 0x%02x is not UTF-8", src[i]), "")
		}
	}
	return nil
}

// maxGrowth bounds how much longer text gets by printing: a control character
// becomes an escape such as \u{1F}, and "!a" becomes !(a ~ "*" || a >= 0).
const maxGrowth = 10

// printedLength returns the length of e's printed form. It returns 0 without
// printing if a text of sourceLength bytes is too short to print above
// MaxLength.
func printedLength(e Expr, sourceLength int) int {
	if maxGrowth*sourceLength <= MaxLength {
		return 0
	}
	return len(e.String())
}

// parser is a recursive-descent parser with one token of lookahead, so its time
// is linear in the source. It is hand-written because participle does not bound
// recursion (10,000 parentheses must be an error and not 10,000 nested calls),
// builds grammar structs by reflection that would have to be converted into
// this tree, and cannot suggest corrections for frequent mistakes.
//
// The first error ends the source: from then on the next token is tokEnd, and
// further errors are ignored. So only Parse looks at the error.
type parser struct {
	lex   lexer
	tok   token // the next one
	depth int   // open parentheses and negations
	nodes int
	err   error
}

// subtree is an expression and its height.
type subtree struct {
	expr   Expr
	height int
}

func (p *parser) advance() {
	if p.err == nil {
		p.tok, p.err = p.lex.next()
	}
	if p.err != nil {
		p.tok = token{kind: tokEnd}
	}
}

func (p *parser) fail(at token, message, expected string) {
	if p.err == nil {
		p.err, p.tok = syntaxError(p.lex.src, at.start, message, expected), token{kind: tokEnd}
	}
}

// unexpected fails at a next token that does not fit.
func (p *parser) unexpected(expected string) {
	var what string
	switch p.tok.kind {
	case tokEnd:
		what = "end of query"
	case tokString:
		what = "string " + string(appendText(nil, clip(p.tok.text)))
	case tokNumber:
		what = "number " + strconv.FormatUint(p.tok.number, 10)
	case tokHex:
		what = "literal " + clip(p.tok.text)
	default:
		what = string(appendText(nil, clip(p.lex.src[p.tok.start:p.tok.end])))
	}
	p.fail(p.tok, "unexpected "+what, expected)
}

// node returns a node that begins at a token, and checks the tree's limits.
func (p *parser) node(at token, e Expr, height int) subtree {
	if p.nodes++; p.nodes > MaxNodes {
		p.fail(at, fmt.Sprintf("query of more than %d operators and comparisons", MaxNodes), "")
	}
	if height > MaxDepth {
		p.tooDeep(at)
	}
	return subtree{e, height}
}

func (p *parser) tooDeep(at token) {
	p.fail(at, fmt.Sprintf("query nested deeper than %d", MaxDepth), "")
}

func (p *parser) or() subtree {
	return p.chain(tokOr, p.and, func(terms []Expr) Expr { return Or{terms} })
}

func (p *parser) and() subtree {
	return p.chain(tokAnd, p.unary, func(terms []Expr) Expr { return And{terms} })
}

// chain parses terms joined by one operator into one node. It loops, so a long
// chain adds no depth.
func (p *parser) chain(op tokenKind, term func() subtree, join func([]Expr) Expr) subtree {
	start := p.tok
	first := term()
	if p.tok.kind != op {
		return first
	}
	terms, height := []Expr{first.expr}, first.height
	for p.tok.kind == op {
		p.advance()
		next := term()
		terms, height = append(terms, next.expr), max(height, next.height)
	}
	return p.node(start, join(terms), height+1)
}

func (p *parser) unary() subtree {
	if p.tok.isWord() && p.comparisonFollows() {
		p.tok.kind = tokName
	}
	start := p.tok
	switch start.kind {
	case tokBang, tokNot:
		return p.negation()
	case tokOpen:
		return p.group()
	case tokStar:
		p.advance()
		return p.node(start, All{}, 1)
	case tokName, tokQuotedName:
		return p.comparison()
	}
	p.unexpected(`an attribute name, "(", "!" or "*"`)
	return subtree{}
}

// comparisonFollows reports whether the tokens after the next one begin a
// comparison, so that the next token, a keyword, is a name: "not in (1)"
// compares an attribute "not", and "not in = 1" negates a comparison of an
// attribute "in".
func (p *parser) comparisonFollows() bool {
	look := p.lex
	op, err := look.next()
	if op.kind == tokNot {
		op, err = look.next()
		if !op.isWord() {
			return false
		}
	}
	if err != nil {
		return false // the error is reported where the token is parsed
	}
	switch {
	case op.kind == tokIn:
		list, err := look.next()
		return err == nil && list.kind == tokOpen
	case op.kind == tokGlob && op.isWord():
		pattern, err := look.next()
		return err == nil && pattern.kind == tokString
	}
	return tokEqual <= op.kind && op.kind <= tokNotGlob
}

// nothingFollows reports whether a term ends with the next token.
func (p *parser) nothingFollows() bool {
	look := p.lex
	after, err := look.next()
	return err == nil && endsTerm(after.kind)
}

func endsTerm(kind tokenKind) bool {
	return kind == tokEnd || kind == tokAnd || kind == tokOr || kind == tokClose
}

// enter passes a negation or an opening parenthesis.
func (p *parser) enter() {
	if p.depth++; p.depth > MaxDepth {
		p.tooDeep(p.tok)
	}
	p.advance()
}

func (p *parser) negation() subtree {
	start := p.tok
	p.enter()
	term := p.negated(start)
	p.depth--
	return p.node(start, Not{term.expr}, term.height+1)
}

// negated parses the operand of a negation. A name without an operator means:
// there is no attribute with this name.
func (p *parser) negated(sign token) subtree {
	if sign.kind == tokBang && p.tok.isWord() && p.nothingFollows() {
		p.tok.kind = tokName
	}
	name := p.tok
	if sign.kind != tokBang || name.kind != tokName && name.kind != tokQuotedName {
		return p.unary()
	}
	p.advance()
	if endsTerm(p.tok.kind) {
		return p.present(name)
	}
	return p.compared(name)
}

func (p *parser) group() subtree {
	open := p.tok
	p.enter()
	inner := p.or()
	if p.tok.kind != tokClose {
		at := syntaxError(p.lex.src, open.start, "", "")
		p.unexpected(fmt.Sprintf(`"&&", "||" or the ")" of %d:%d`, at.Line, at.Column))
	}
	p.depth--
	p.advance()
	return inner
}

// operatorList is the list of operators in messages.
const operatorList = "=, !=, <, <=, >, >=, ~, !~, glob, not glob, in, not in"

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

// token is one token of a query. Its source text is src[start:end].
type token struct {
	kind       tokenKind
	start, end int
	text       string // decoded, of names, keywords, strings and hexadecimal literals
	number     uint64 // of numbers
}

// lexer splits a query into tokens, one at a time. The source is UTF-8.
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

// keyword returns the kind of a keyword, in any case, or 0.
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

// isWord reports whether an operator was written as a word instead of a symbol.
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

// symbols are tried in this order: longer ones before their prefixes.
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

// mistakes are symbols of other languages, with the correction. None of them
// can begin a valid sequence here.
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
