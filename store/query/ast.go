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

import "github.com/varvedb/varve/store/entity"

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
