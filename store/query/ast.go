// Package query is the entity query language: Arkiv's, corrected. It parses
// text into a tree, checks it, prints it, and reports whether an entity
// matches. It knows no SQL; layouts compile the tree as it stands, without
// expanding it to a normal form.
//
//	expr       = and { ("||" | "or") and }
//	and        = unary { ("&&" | "and") unary }
//	unary      = ("!" | "not") unary | "(" expr ")" | comparison | "!" name | "*" | "$all"
//	comparison = name ("=" | "!=" | "<" | "<=" | ">" | ">=") literal
//	           | name ("~" | "!~" | ["not"] "glob") string
//	           | name ["not"] "in" "(" literal { [","] literal } ")"
//	name       = a letter, "_" or "$", then letters, digits, "_", "." and "-"
//	           | "`" any characters, a backtick doubled "`"
//	literal    = string | number | address or key
//
// A string stands in double quotes and knows the escapes \" \\ \n \r \t \0 \uXXXX and \u{X…}. A
// number is a decimal integer up to 2⁶⁴−1. An address is 0x and 40 hexadecimal digits, a key 0x and
// 64; both are strings in lower case. The keywords and, or, not, in and glob are written in any
// case. Where a name must stand, one of them is a name if a comparison follows it, and after "!"
// also if nothing does; in backticks it always is.
//
// A comparison is true only of entities that have an attribute of that name
// and of the literal's type; "!=", "!~" and "not in" therefore match entities
// that have the attribute with another value, while "!(…)" is the complement. A name
// alone after "!" matches entities that have no attribute of that name, of either type.
//
// Terms chained by one operator make one And or Or, and parentheses around an
// And inside an And (or an Or inside an Or) keep it as a separate node. Hence
// Parse of a printed tree gives an equal tree, for trees that Parse made and
// for hand-built trees that pass Check.
package query

import (
	"fmt"

	"github.com/varvedb/varve/store/entity"
)

// Expr is a node of the tree: All, And, Or, Not, Compare, Glob or In. Trees
// are values: nothing changes one after it is made.
type Expr interface {
	// String prints the node in the language; Parse of it gives an equal node.
	String() string
	expr()
}

// All matches every entity.
type All struct{}

// And matches what all of its two or more terms match.
type And struct{ Terms []Expr }

// Or matches what any of its two or more terms match.
type Or struct{ Terms []Expr }

// Not matches what its term does not match.
type Not struct{ Term Expr }

// Compare compares an attribute with a literal of its type.
type Compare struct {
	Name  string
	Op    CompareOp
	Value Value
}

// Glob matches a string attribute against a pattern: "*" any run of
// characters, "?" any one, "[a-z]" one of a set, "[^a-z]" one not of it.
// Characters are Unicode code points. There is no escape; "[*]" matches a star.
type Glob struct {
	Name    string
	Pattern string
	Negated bool // "!~"
}

// In reports whether an attribute's value is in a list of literals of one type.
// The list has at least one.
type In struct {
	Name    string
	Values  []Value
	Negated bool // "not in"
}

func (All) expr()     {}
func (And) expr()     {}
func (Or) expr()      {}
func (Not) expr()     {}
func (Compare) expr() {}
func (Glob) expr()    {}
func (In) expr()      {}

// CompareOp is a comparison operator.
type CompareOp uint8

// The comparison operators.
const (
	Equal CompareOp = iota + 1
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
)

// Value is a literal. Hexadecimal literals (addresses, keys) are strings in lower case.
type Value struct {
	Kind   entity.AttributeKind
	Text   string // when Kind is entity.String
	Number uint64 // when Kind is entity.Numeric
}

// Text makes a string literal.
func Text(s string) Value { return Value{Kind: entity.String, Text: s} }

// Number makes a numeric literal.
func Number(n uint64) Value { return Value{Kind: entity.Numeric, Number: n} }

// comparison parses a term that begins with a name: a comparison, a glob, a
// list, or $all.
func (p *parser) comparison() subtree {
	name := p.tok
	p.advance()
	return p.compared(name)
}

// compared parses the rest of a term after its name.
func (p *parser) compared(name token) subtree {
	if name.kind == tokName && name.text == allName && !p.atOperator() {
		return p.node(name, All{}, 1)
	}
	p.check(name, checkName(name.text))
	return p.node(name, p.operation(name.text), 1)
}

// check fails at a token if it breaks a rule of comparisons.
func (p *parser) check(at token, broken error) {
	if broken != nil {
		p.fail(at, broken.Error(), "")
	}
}

// present makes an expression that is true of every entity with an attribute of
// that name.
func (p *parser) present(name token) subtree {
	if name.kind == tokName && name.text == allName {
		return p.node(name, All{}, 1)
	}
	p.check(name, checkName(name.text))
	text, number := Glob{Name: name.text, Pattern: "*"}, Compare{name.text, GreaterOrEqual, Number(0)}
	kind, synthetic := entity.SyntheticKind(name.text)
	switch {
	case synthetic && kind == entity.String:
		return p.node(name, text, 1)
	case synthetic:
		return p.node(name, number, 1)
	}
	p.nodes += 2
	return p.node(name, Or{[]Expr{text, number}}, 2)
}

func (p *parser) atOperator() bool {
	switch p.tok.kind {
	case tokGlob, tokNotGlob, tokIn, tokNot:
		return true
	}
	return p.compareOp() != 0
}

// compareOp returns the comparison operator of the next token, or 0.
func (p *parser) compareOp() CompareOp {
	if p.tok.kind < tokEqual || p.tok.kind > tokGreaterOrEqual {
		return 0
	}
	return Equal + CompareOp(p.tok.kind-tokEqual) // declared in the same order
}

// operation parses the operator and operand after a name.
func (p *parser) operation(name string) Expr {
	op := p.tok
	if cmp := p.compareOp(); cmp != 0 {
		p.advance()
		return Compare{name, cmp, p.literal(name, cmp == Equal || cmp == NotEqual, "a value")}
	}
	switch op.kind {
	case tokGlob, tokNotGlob:
		return p.glob(name, op.kind == tokNotGlob)
	case tokNot:
		p.advance()
		switch {
		case p.tok.kind == tokIn:
			return In{name, p.list(name), true}
		case p.tok.kind == tokGlob && p.tok.isWord():
			return p.glob(name, true)
		}
		p.unexpected(`"in" or "glob"`)
		return nil
	case tokIn:
		return In{name, p.list(name), false}
	}
	p.unexpected("an operator (" + operatorList + ")")
	return nil
}

// glob parses the operator and its pattern.
func (p *parser) glob(name string, negated bool) Expr {
	p.advance()
	if p.tok.kind != tokString {
		p.unexpected("a pattern in double quotes")
	}
	pattern := p.tok
	p.check(pattern, checkPattern(name, pattern.text))
	p.advance()
	return Glob{name, pattern.text, negated}
}

// literal parses a value to compare the attribute with. If the comparison is
// for equality, text that means an address or a key is converted to lower case.
func (p *parser) literal(name string, exact bool, expected string) (value Value) {
	switch p.tok.kind {
	case tokString, tokHex:
		value = Text(p.tok.text)
		if exact {
			value.Text = canonicalHex(name, value.Text)
		}
	case tokNumber:
		value = Number(p.tok.number)
	case tokName:
		p.unexpected(expected + " (strings are written in double quotes)")
	default:
		p.unexpected(expected)
	}
	p.check(p.tok, checkType(name, value.Kind))
	p.advance()
	return value
}

// list parses "in" and its values.
func (p *parser) list(name string) (values []Value) {
	p.advance()
	if p.tok.kind != tokOpen {
		p.unexpected(`"("`)
	}
	p.advance()
	expected := "a value"
	for p.err == nil && (len(values) == 0 || p.tok.kind != tokClose) {
		start := p.tok
		value := p.literal(name, true, expected)
		if values = append(values, value); len(values) > MaxList {
			p.fail(start, fmt.Sprintf("list of more than %d values", MaxList), "")
		}
		if first := values[0].Kind; value.Kind != first {
			p.fail(start, fmt.Sprintf("a %s in a list of %ss", kindName(value.Kind), kindName(first)),
				"values of one type")
		}
		expected = p.separator()
	}
	p.advance()
	return values
}

// separator parses the comma after a value of a list, if there is one, and
// returns what may come next.
func (p *parser) separator() (expected string) {
	if p.tok.kind != tokComma {
		return `a value, "," or ")"`
	}
	p.advance()
	if p.tok.kind == tokClose {
		p.unexpected("a value")
	}
	return "a value"
}
