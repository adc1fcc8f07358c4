package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varvedb/varve/store/entity"
)

// Check reports whether Parse could have made a hand-built tree. Layouts and
// Match rely on that: nodes by value and not by pointer, And and Or of two or
// more terms, known operators and kinds, lists that are not empty and of one
// type, names and text in UTF-8, synthetic attributes compared with their own
// type, keys and addresses compared for equality in lower case, and everything
// within the limits. The error wraps ErrInvalid. It never fails for a tree from
// Parse.
func Check(e Expr) error {
	var c checker
	if err := c.expr(e, 1); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if n := len(e.String()); n > MaxLength {
		return fmt.Errorf("%w: %d bytes when printed, at most %d are allowed", ErrInvalid, n, MaxLength)
	}
	return nil
}

type checker struct {
	nodes int
	bytes int // of names and text, a lower bound of the printed length
}

func (c *checker) expr(e Expr, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	if c.nodes++; c.nodes > MaxNodes {
		return fmt.Errorf("more than %d operators and comparisons", MaxNodes)
	}
	switch e := e.(type) {
	case All:
		return nil
	case And:
		return c.terms("And", e.Terms, depth)
	case Or:
		return c.terms("Or", e.Terms, depth)
	case Not:
		return c.expr(e.Term, depth+1)
	case Compare:
		return c.compare(e)
	case Glob:
		return c.glob(e)
	case In:
		return c.in(e)
	}
	return fmt.Errorf("unknown node %T; nodes are values: All, And, Or, Not, Compare, Glob or In", e)
}

func (c *checker) terms(what string, terms []Expr, depth int) error {
	if len(terms) < 2 {
		return fmt.Errorf("%s of %d terms, want two or more", what, len(terms))
	}
	for _, term := range terms {
		if err := c.expr(term, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// grow counts bytes before anything is printed, because many nodes of a tree
// may share one huge string.
func (c *checker) grow(n int) error {
	if c.bytes += n; c.bytes > MaxLength {
		return fmt.Errorf("more than %d bytes of names and text", MaxLength)
	}
	return nil
}

func (c *checker) name(name string) error {
	if err := c.grow(len(name)); err != nil {
		return err
	}
	return checkName(name)
}

func (c *checker) compare(e Compare) error {
	if err := c.name(e.Name); err != nil {
		return err
	}
	if e.Op < Equal || e.Op > GreaterOrEqual {
		return fmt.Errorf("attribute %q: unknown %s", e.Name, e.Op)
	}
	return c.value(e.Name, e.Value, e.Op == Equal || e.Op == NotEqual)
}

func (c *checker) glob(e Glob) error {
	if err := c.name(e.Name); err != nil {
		return err
	}
	if err := c.grow(len(e.Pattern)); err != nil {
		return err
	}
	return checkPattern(e.Name, e.Pattern)
}

func (c *checker) in(e In) error {
	if err := c.name(e.Name); err != nil {
		return err
	}
	if len(e.Values) == 0 || len(e.Values) > MaxList {
		return fmt.Errorf("attribute %q: list of %d values, want 1 to %d", e.Name, len(e.Values), MaxList)
	}
	for _, v := range e.Values {
		if v.Kind != e.Values[0].Kind {
			return fmt.Errorf("attribute %q: list of strings and numbers, want one type", e.Name)
		}
		if err := c.value(e.Name, v, true); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) value(name string, v Value, exact bool) error {
	if err := c.grow(len(v.Text)); err != nil {
		return err
	}
	if !v.wellFormed() {
		return fmt.Errorf("attribute %q: malformed literal of kind %d; use Text or Number", name, v.Kind)
	}
	if !utf8.ValidString(v.Text) {
		return fmt.Errorf("attribute %q: string %q is not UTF-8", name, clip(v.Text))
	}
	if exact && canonicalHex(name, v.Text) != v.Text {
		return fmt.Errorf("attribute %q: %q must be in lower case", name, v.Text)
	}
	return checkType(name, v.Kind)
}

// The rules of a comparison. The parser and Check share them; the parser adds
// the position.

// allName is the reserved name that selects everything; it is not an attribute.
const allName = "$all"

var syntheticNames = []string{
	entity.AttrKey, entity.AttrOwner, entity.AttrCreator, entity.AttrExpiration,
	entity.AttrCreatedAtBlock, entity.AttrLastModifiedAtBlock,
	entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
}

func checkName(name string) error {
	if name == "" {
		return errors.New("an attribute name cannot be empty")
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("attribute name %q is not UTF-8", clip(name))
	}
	if name == allName {
		return errors.New("$all selects every entity and cannot be compared")
	}
	if _, known := entity.SyntheticKind(name); name[0] == '$' && !known {
		return fmt.Errorf("unknown attribute %q: names that start with $ are reserved, known are %s",
			clip(name), strings.Join(syntheticNames, ", "))
	}
	return nil
}

// checkType refuses a comparison that no entity can satisfy because a
// synthetic attribute has only the other type.
func checkType(name string, literal entity.AttributeKind) error {
	if kind, ok := entity.SyntheticKind(name); ok && kind != literal {
		return fmt.Errorf("%s is a %s and cannot be compared with a %s", name, kindName(kind), kindName(literal))
	}
	return nil
}

func checkPattern(name, pattern string) error {
	if kind, ok := entity.SyntheticKind(name); ok && kind != entity.String {
		return fmt.Errorf("%s is a %s and cannot match a pattern", name, kindName(kind))
	}
	if len(pattern) > MaxPattern {
		return fmt.Errorf("pattern of %d bytes, at most %d are allowed", len(pattern), MaxPattern)
	}
	if !utf8.ValidString(pattern) {
		return fmt.Errorf("pattern %q is not UTF-8", clip(pattern))
	}
	return nil
}

func kindName(kind entity.AttributeKind) string {
	if kind == entity.Numeric {
		return "number"
	}
	return "string"
}

// canonicalHex returns s in the form that is stored under name. Keys and
// addresses are stored in lower case, so pasted text such as "0xAB" can only
// mean "0xab" there. Other text stays as it is.
func canonicalHex(name, s string) string {
	if kind, ok := entity.SyntheticKind(name); !ok || kind != entity.String {
		return s
	}
	if len(s) < 2 || s[0] != '0' || s[1]|0x20 != 'x' || !isHex(s[2:]) {
		return s
	}
	return strings.ToLower(s)
}

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !isHexDigit(c) })
}

func isHexDigit(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// isHexLiteral reports whether s is printed as an address or a key, without
// quotes.
func isHexLiteral(s string) bool {
	return isHexLength(len(s)-2) && s[:2] == "0x" && isHex(s[2:]) && s == strings.ToLower(s)
}

// isHexLength reports whether addresses or keys have that many digits.
func isHexLength(digits int) bool {
	return digits == 2*len(entity.Address{}) || digits == 2*len(entity.Key{})
}

// isPlainName reports whether name can be written without backticks.
func isPlainName(name string) bool {
	for i, c := range name {
		if i == 0 && !isNameStart(c) || !isNamePart(c) && i > 0 {
			return false
		}
	}
	return name != "" && keyword(name) == 0 && utf8.ValidString(name)
}

func isNameStart(c rune) bool { return c == '_' || c == '$' || unicode.IsLetter(c) }

func isNamePart(c rune) bool {
	return c == '_' || c == '.' || c == '-' || unicode.IsLetter(c) || unicode.IsNumber(c)
}

// wellFormed reports whether v is a well-formed literal of one type.
func (v Value) wellFormed() bool {
	switch v.Kind {
	case entity.String:
		return v.Number == 0
	case entity.Numeric:
		return v.Text == ""
	}
	return false
}
