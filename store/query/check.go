package query

import (
	"fmt"
	"unicode/utf8"
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

// grow adds to the bytes seen, before anything is printed: a tree may share
// one huge string among many nodes.
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
