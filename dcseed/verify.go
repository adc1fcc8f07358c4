package dcseed

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/entity"
)

// ErrMismatch: an answer is wrong. Every error of Oracle.Verify is a *Mismatch
// that wraps it.
var ErrMismatch = errors.New("wrong answer")

// Mismatch tells how an answer differs from the one expected.
type Mismatch struct {
	Query     Query
	Want, Got uint64 // number of keys, or the counts of a CountOnly

	Missing    []string // identifiers of what is not in the answer but should be
	Extra      []string // keys, with identifier and state, of what should not be
	Duplicates []string // keys that come more than once

	// Order tells the first position, from 0, where the right keys are in the
	// wrong order. Empty when they are in order or not the right ones.
	Order string

	// Fields tells what of the entity of a NodeState differs, a part a string.
	Fields []string
}

// mentioned is how many keys of a kind a message names, and how many extra keys
// are looked up.
const mentioned = 5

// Error names what is wrong, of each list the first few.
func (e *Mismatch) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", ErrMismatch, e.Query)
	if e.Want != e.Got {
		fmt.Fprintf(&b, ": %d found, want %d", e.Got, e.Want)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{
		{"missing", e.Missing}, {"extra", e.Extra}, {"twice", e.Duplicates}, {"different", e.Fields},
	} {
		if len(list.items) > 0 {
			fmt.Fprintf(&b, "; %s: %s", list.name, strings.Join(list.items[:min(mentioned, len(list.items))], ", "))
		}
		if more := len(list.items) - mentioned; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
	}
	if e.Order != "" {
		fmt.Fprintf(&b, "; order: %s", e.Order)
	}
	return b.String()
}

// Unwrap returns ErrMismatch.
func (e *Mismatch) Unwrap() error { return ErrMismatch }

// Verify compares a store's answer with the expected one, order included. The
// error is a *Mismatch. Naming extra keys looks at every entity of the model, so
// that a wrong answer takes much longer to verify than a right one.
func (o *Oracle) Verify(q Query, got Answer) error {
	if q.Kind == NodeState {
		return o.verifyState(q, got.Entity)
	}
	matches := o.matches(q)
	m := &Mismatch{Query: q, Want: uint64(len(matches)), Got: got.Count}
	if q.CountOnly {
		return m.errIf(m.Want != m.Got)
	}
	want := o.ordered(q, matches)
	m.Want, m.Got = uint64(len(want)), uint64(len(got.Keys))
	o.compareKeys(m, want, got.Keys)
	return m.errIf(m.Missing != nil || m.Extra != nil || m.Duplicates != nil || m.Order != "")
}

func (e *Mismatch) errIf(wrong bool) error {
	if wrong {
		return e
	}
	return nil
}

func (o *Oracle) compareKeys(m *Mismatch, want []Ref, got []entity.Key) {
	left := make(map[entity.Key]Ref, len(want))
	keys := make([]entity.Key, len(want))
	for i, r := range want {
		keys[i] = r.Key()
		left[keys[i]] = r
	}
	if slices.Equal(keys, got) {
		return
	}
	seen := make(map[entity.Key]bool, len(got))
	var extra []entity.Key
	for _, key := range got {
		_, wanted := left[key]
		switch {
		case seen[key]:
			m.Duplicates = append(m.Duplicates, key.String())
		case !wanted:
			extra = append(extra, key)
		}
		seen[key] = true
	}
	for i, r := range want {
		if !seen[keys[i]] {
			m.Missing = append(m.Missing, r.ID())
		}
	}
	m.Extra = o.describe(extra, m.Query.Block)
	if m.Missing == nil && m.Extra == nil && m.Duplicates == nil {
		m.Order = misplaced(want, keys, got, left)
	}
}

func misplaced(want []Ref, keys, got []entity.Key, names map[entity.Key]Ref) string {
	for i := range keys {
		if keys[i] != got[i] {
			return fmt.Sprintf("position %d is %s, want %s", i, names[got[i]], want[i])
		}
	}
	return ""
}

// describe names keys that an answer should not have: the identifier, which
// only a search can find, and the state at the block, which tells why.
func (o *Oracle) describe(keys []entity.Key, block uint64) []string {
	var names []string
	found := o.model.Identify(keys[:min(mentioned, len(keys))]...)
	for _, key := range keys {
		r, ok := found[key]
		if !ok {
			names = append(names, key.String())
			continue
		}
		status, visible := o.model.StatusAt(r, block)
		if !visible {
			status = "not visible"
		}
		names = append(names, fmt.Sprintf("%s = %s (%s)", key, r, status))
	}
	return names
}

// Identify returns the entities that have the keys; those of other entities,
// recorded events among them, are left out. It looks at every entity until all
// are found, about 100 ns each.
func (m *Model) Identify(keys ...entity.Key) map[entity.Key]Ref {
	open := make(map[entity.Key]bool, len(keys))
	for _, key := range keys {
		open[key] = true
	}
	found := make(map[entity.Key]Ref, len(keys))
	for _, p := range []*population{&m.nodes, &m.workloads} {
		for i := uint64(0); i < p.count && len(open) > 0; i++ {
			r := p.ref(i)
			if key := r.Key(); open[key] {
				found[key] = r
				delete(open, key)
			}
		}
	}
	return found
}

func (o *Oracle) verifyState(q Query, got *entity.Entity) error {
	want := o.Expected(q).Entity
	m := &Mismatch{Query: q}
	switch {
	case want == nil && got == nil:
		return nil
	case got == nil:
		m.Want, m.Missing = 1, []string{NodeRef(q.DC, q.N).ID()}
	case want == nil:
		m.Got, m.Extra = 1, o.describe([]entity.Key{got.Key}, q.Block)
	default:
		m.Want, m.Got = 1, 1
		m.Fields = Differences(want, got, q.Content)
	}
	return m.errIf(m.Want != m.Got || m.Fields != nil)
}
