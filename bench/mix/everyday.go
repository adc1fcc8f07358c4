package mix

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Mix W asks about the attributes that the data have. An index of all values would be larger
// than all else that the oracle keeps, because ids and hashes are different in each entity. So
// it has a sample of the values of each attribute: all where they are few, as those of a status,
// and otherwise those with the smallest hashes, each as likely as any other. A value in the
// sample has been in it since it came first, so its list is complete.
const (
	maxAttributes = 1_024 // that come first
	maxValues     = 128   // of each
	maxText       = 256   // bytes of a name or a value that is asked for
)

// sample is the attributes that entities have, with values of them.
type sample struct {
	byName map[attributeName]*attribute
	sorted []*attribute // when it is fixed
	values []*value     // by number; nil where another took the place
	held   []uint32     // numbers of the values of each version, one version after the other
	fixed  bool         // nothing new comes in
}

type attributeName struct {
	name string
	kind entity.AttributeKind
}

type attribute struct {
	attributeName
	hash   uint64
	rows   uint64   // versions that have it
	values []*value // by hash
}

// value is one of an attribute, with the lives that ever had it, oldest first.
type value struct {
	of     attributeName
	value  query.Value
	number uint32
	hash   uint64
	lives  []int32
}

// fix leaves out what is new from now on, and keeps the lists of what there is: readers
// draw from it.
func (s *sample) fix() {
	if s.fixed {
		return
	}
	s.fixed = true
	for _, a := range s.byName {
		s.sorted = append(s.sorted, a)
	}
	slices.SortFunc(s.sorted, func(a, b *attribute) int { return compareNames(a.attributeName, b.attributeName) })
}

func compareNames(a, b attributeName) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
}

// add enters what a version of a life has.
func (s *sample) add(v *version, e *entity.Entity, l int32) {
	if !s.fixed {
		s.meet(e)
	}
	v.held = uint32(len(s.held))
	var fresh []*value
	note := func(name attributeName, is query.Value) {
		if v := s.find(name, is); v != nil && v.lives == nil {
			fresh = append(fresh, v)
		} else if v != nil {
			s.post(v, l)
		}
	}
	for name, text := range e.StringAttributes {
		if text != "" && len(text) <= maxText { // nobody asks for an empty one
			note(attributeName{name, entity.String}, query.Text(text))
		}
	}
	for name, n := range e.NumericAttributes {
		note(attributeName{name, entity.Numeric}, query.Number(n))
	}
	slices.SortFunc(fresh, func(a, b *value) int { return compareNames(a.of, b.of) })
	for _, v := range fresh {
		s.take(v)
		s.post(v, l)
	}
	v.holds = uint32(len(s.held)) - v.held
}

// meet takes up new attributes, in an order of their own where not all find a place.
func (s *sample) meet(e *entity.Entity) {
	var fresh []attributeName
	note := func(a attributeName) {
		if s.byName[a] == nil && len(a.name) <= maxText {
			fresh = append(fresh, a)
		}
	}
	for name := range e.StringAttributes {
		note(attributeName{name, entity.String})
	}
	for name := range e.NumericAttributes {
		note(attributeName{name, entity.Numeric})
	}
	slices.SortFunc(fresh, compareNames)
	for _, a := range fresh[:min(len(fresh), maxAttributes-len(s.byName))] {
		s.byName[a] = &attribute{attributeName: a, hash: hashText(uint64(a.kind), a.name)}
	}
}

// find returns a value of the sample, a new one that can come into it, or nil.
func (s *sample) find(name attributeName, is query.Value) *value {
	a := s.byName[name]
	if a == nil {
		return nil
	}
	if !s.fixed {
		a.rows++
	}
	hash := hashText(a.hash+splitmix.Scramble(is.Number), is.Text)
	switch i, found := a.place(hash); {
	case found && a.values[i].value == is:
		return a.values[i]
	case found || s.fixed || i == maxValues:
		return nil
	}
	return &value{of: name, value: is, hash: hash}
}

// place returns where a hash is or would be among the values.
func (a *attribute) place(hash uint64) (i int, found bool) {
	return slices.BinarySearchFunc(a.values, hash, func(v *value, hash uint64) int { return cmp.Compare(v.hash, hash) })
}

// take puts a new value in the place of the one with the greatest hash.
func (s *sample) take(v *value) {
	a := s.byName[v.of]
	if len(a.values) == maxValues {
		s.values[a.values[maxValues-1].number] = nil
		a.values = a.values[:maxValues-1]
	}
	v.number = uint32(len(s.values))
	i, _ := a.place(v.hash)
	a.values, s.values = slices.Insert(a.values, i, v), append(s.values, v)
}

// post enters a life into the list of a value.
func (s *sample) post(v *value, l int32) {
	v.lives = insert(v.lives, l)
	s.held = append(s.held, v.number)
}

// hashText is the same in every process, so that the same values are asked for.
func hashText(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211 // FNV-1a
	}
	return splitmix.Scramble(h)
}

// of returns the numbers of the values of a version.
func (s *sample) of(v *version) []uint32 { return s.held[v.held : v.held+v.holds] }

// Questions.

// tries is how often a value is drawn until an entity that is visible has it.
const tries = 200

// value asks for what has a value of an attribute. Half of the values are those of an
// entity, so that one is as likely as it is frequent. The others are any of an attribute,
// which is as likely as it is frequent: mostly rare ones, where there are many.
func (d *draws) value(limit int) Op {
	draw := d.commonValue
	if d.r.IntN(2) == 0 {
		draw = d.rareValue
	}
	for range tries {
		v := draw()
		if v == nil {
			continue
		}
		if q := (question{topic: byValue, number: v.number}); len(d.o.answer(q, d.head, 1)) > 0 {
			return d.scan(q, limit)
		}
	}
	return d.with(byType, absent, limit)
}

// commonValue is one of the values of an entity; nil when none is in the sample.
func (d *draws) commonValue() *value {
	l := d.live(d.head)
	if l == none {
		return nil
	}
	s := &d.o.sample
	var list []*value
	for _, number := range s.of(d.o.at(l, d.head)) {
		if v := s.values[number]; v != nil {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *value) int { return cmp.Or(cmp.Compare(a.hash, b.hash), compareNames(a.of, b.of)) })
	return list[d.r.IntN(len(list))]
}

// rareValue is one of the values of an attribute; nil when there is none.
func (d *draws) rareValue() *value {
	rows := uint64(0)
	for _, a := range d.o.sample.sorted {
		rows += a.rows
	}
	if rows == 0 {
		return nil
	}
	at := d.r.Uint64N(rows)
	for _, a := range d.o.sample.sorted {
		if at < a.rows && len(a.values) > 0 {
			return a.values[d.r.IntN(len(a.values))]
		}
		at -= min(at, a.rows)
	}
	return nil
}

// creator asks for what an account has created. Half of the accounts are those of an
// entity, so that one is as likely as it is busy; the others are any.
func (d *draws) creator(limit int) Op {
	if d.r.IntN(2) == 0 {
		if l := d.live(d.head); l != none {
			return d.with(byCreator, d.o.lives[l].creator.String(), limit)
		}
	}
	return d.some(byCreator, "", limit)
}

// around asks for what was last modified in a range of blocks that has an entity's last
// change. Its length is a power of two, from one block up to the whole history.
func (d *draws) around(limit int) Op {
	at, first := d.head, d.head
	if l := d.live(d.head); l != none {
		at, first = uint64(d.o.at(l, d.head).from), d.o.first()
	}
	length := uint64(1) << d.r.IntN(bits.Len64(d.head-min(first, d.head))+1)
	from := at - min(at, d.r.Uint64N(length))
	return d.scan(question{topic: byWindow, from: from, to: from + length}, limit)
}
