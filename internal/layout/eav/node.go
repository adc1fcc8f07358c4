package eav

import "slices"

// node is a condition on the version of an entity, between the query tree and
// SQL: literal, version, *attribute, conjunction, disjunction, negation, or what
// a planner puts in place of a conjunction, driven.
type node any

// literal is SQL that does not depend on the version.
type literal string

// Conditions with a known answer.
const (
	always literal = "1 = 1"
	never  literal = "1 = 0"
)

// version tests a column that all rows of a version share.
type version struct {
	byKey bool   // entity_key, by a list of keys; else the first block
	test  string // what follows the column
	args  []any
}

// attribute is the condition that the entity has an attribute whose value meets
// all conditions. What follows those is the planner's.
type attribute struct {
	table, name string
	values      []condition

	entries int  // of an index that lead to it, as far as counted
	counted int  // how many at most were counted; 0 for not at all
	lookup  bool // look up the attribute of the version at hand, instead of making a list of all entities
}

// equals returns the values of which one must be the attribute's, or nil when it may be
// others.
func (a *attribute) equals() []any {
	if i := a.equality(); i >= 0 {
		return a.values[i].equals
	}
	return nil
}

// equality returns which condition names values, or -1.
func (a *attribute) equality() int {
	return slices.IndexFunc(a.values, func(c condition) bool { return len(c.equals) > 0 })
}

// indexed returns the conditions that an index on (key, value) serves.
func (a *attribute) indexed() []condition {
	return slices.DeleteFunc(slices.Clone(a.values), func(c condition) bool { return !c.indexed })
}

// legs returns a leg for each of some values.
func (a *attribute) legs(d dialect, values []any) []leg {
	legs := make([]leg, len(values))
	for i, value := range values {
		conditions := []condition{compared("=", value, true)}
		for j, c := range a.values {
			if j != a.equality() {
				text := c.text
				c.text = func(column string) string { return text(d.hidden(column)) }
				conditions = append(conditions, c)
			}
		}
		legs[i] = leg{name: a.name, key: "a.key", value: "a.value", values: conditions}
	}
	return legs
}

// few tells whether an index is known to have fewer entries for the attribute
// than a number.
func (a *attribute) few(n int) bool { return a.entries < min(n, a.counted) }

type (
	conjunction []node // two or more terms, none of them a conjunction
	disjunction []node // two or more terms, none of them a disjunction
	negation    struct{ term node }
)

// condition is a test of an attribute's value.
type condition struct {
	text    func(column string) string
	args    []any
	indexed bool // rows that meet it are neighbours in an index on (key, value)

	equals []any // the values that meet it, if these are all
}

// compared is the condition that a value stands in a relation to another.
func compared(operator string, value any, indexed bool) condition {
	c := condition{
		text:    func(column string) string { return column + " " + operator + " ?" },
		args:    []any{value},
		indexed: indexed,
	}
	if operator == "=" {
		c.equals = c.args
	}
	return c
}

// listed is the condition that a value is in a list, or not in it.
func listed(values []any, negated bool) condition {
	operator := " IN "
	if negated {
		operator = " NOT IN "
	}
	c := condition{
		text:    func(column string) string { return column + operator + placeholders(len(values)) },
		args:    values,
		indexed: !negated,
	}
	if !negated {
		c.equals = values
	}
	return c
}

// conjoin makes a conjunction of terms, those of conjunctions among them
// included. Conditions on one attribute become one: of each attribute an entity
// has one value of a type at a time.
func conjoin(terms []node) node {
	type name struct{ table, name string }
	seen := map[name]*attribute{}
	var list conjunction
	for _, term := range flatten[conjunction](terms) {
		if a, ok := term.(*attribute); ok {
			if first := seen[name{a.table, a.name}]; first != nil {
				first.values = append(first.values, a.values...)
				continue
			}
			seen[name{a.table, a.name}] = a
		}
		list = append(list, term)
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// flatten replaces terms of type T by their own terms.
func flatten[T ~[]node](terms []node) []node {
	var list []node
	for _, term := range terms {
		if inner, ok := term.(T); ok {
			list = append(list, inner...)
		} else {
			list = append(list, term)
		}
	}
	return list
}

// attributes calls f with the attributes that a node compares.
func attributes(n node, f func(*attribute)) {
	switch n := n.(type) {
	case *attribute:
		f(n)
	case conjunction:
		for _, term := range n {
			attributes(term, f)
		}
	case disjunction:
		for _, term := range n {
			attributes(term, f)
		}
	case negation:
		attributes(n.term, f)
	}
}
