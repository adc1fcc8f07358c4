package mix

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Mix W asks for the attributes that the data have. Indexing all values would
// take more memory than the rest of the oracle, because ids and hashes differ
// in each entity. So the oracle keeps a sample of each attribute's values: all
// of them if they are few, as of a status; otherwise the values with the
// smallest hashes, so that each is equally likely to be chosen. A value in the
// sample has been in it since its first use, so its list is complete.
const (
	maxAttributes = 1_024 // only the first ones are sampled
	maxValues     = 128   // of each attribute
	maxText       = 256   // longest name or value that is asked for, in bytes
)

// sample holds the attributes of the data, with some of their values.
type sample struct {
	byName  map[attributeName]*attribute
	sorted  []*attribute // all attributes, set by fix
	values  []*value     // by number; nil if the value was displaced
	numbers []uint32     // of the values of each version, concatenated
	fixed   bool         // no new values are added
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

// value is one value of an attribute, with the lives that ever had it, oldest
// first.
type value struct {
	of     attributeName
	value  query.Value
	number uint32
	hash   uint64
	lives  []int32
}

// fix stops adding new values, and keeps the lists of the present ones up to
// date, because readers draw from them.
func (s *sample) fix() {
	if s.fixed {
		return
	}
	s.fixed = true
	s.sorted = slices.SortedFunc(maps.Values(s.byName), func(a, b *attribute) int { return compareNames(a.attributeName, b.attributeName) })
}

func compareNames(a, b attributeName) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
}

// add records the values of a version of a life, in the order of names, because
// not all may fit.
func (s *sample) add(v *version, e *entity.Entity, l int32) {
	v.firstNumber = uint32(len(s.numbers))
	for _, name := range slices.Sorted(maps.Keys(e.StringAttributes)) {
		if text := e.StringAttributes[name]; text != "" && len(text) <= maxText { // no question asks for an empty one
			s.post(attributeName{name, entity.String}, query.Text(text), l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.NumericAttributes)) {
		s.post(attributeName{name, entity.Numeric}, query.Number(e.NumericAttributes[name]), l)
	}
	v.endNumber = uint32(len(s.numbers))
}

// post adds a life to the list of a value, if the value is in the sample or may
// enter it. A new value replaces the one with the greatest hash.
func (s *sample) post(name attributeName, is query.Value, l int32) {
	a := s.byName[name]
	if a == nil && (s.fixed || len(s.byName) == maxAttributes || len(name.name) > maxText) {
		return
	}
	if a == nil {
		a = &attribute{attributeName: name, hash: hashText(uint64(name.kind), name.name)}
		s.byName[name] = a
	}
	if !s.fixed {
		a.rows++
	}
	hash := hashText(a.hash+splitmix.Scramble(is.Number), is.Text)
	i, found := slices.BinarySearchFunc(a.values, hash, func(v *value, hash uint64) int { return cmp.Compare(v.hash, hash) })
	switch {
	case found && a.values[i].value != is, !found && (s.fixed || i == maxValues):
		return
	case !found:
		if len(a.values) == maxValues {
			s.values[a.values[maxValues-1].number] = nil
			a.values = a.values[:maxValues-1]
		}
		v := &value{of: name, value: is, hash: hash, number: uint32(len(s.values))}
		a.values, s.values = slices.Insert(a.values, i, v), append(s.values, v)
	}
	v := a.values[i]
	v.lives, s.numbers = insert(v.lives, l), append(s.numbers, v.number)
}

// hashText is the same in every process, so that every run asks for the same
// values.
func hashText(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211 // FNV-1a
	}
	return splitmix.Scramble(h)
}

// numbersOf returns the numbers of a version's values.
func (s *sample) numbersOf(v *version) []uint32 { return s.numbers[v.firstNumber:v.endNumber] }

// Questions.

// tries is how often a value is drawn until a visible entity has it.
const tries = 200

// value asks for entities with a value of an attribute. Half of the values come
// from a random entity, so that a value is as likely as it is frequent. The
// other half come from a random attribute, each value equally likely: mostly
// rare values.
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
	return d.withValue(byType, absent, limit)
}

// commonValue returns a value of a random entity; nil when none is in the
// sample.
func (d *draws) commonValue() *value {
	l := d.live(d.head)
	if l == none {
		return nil
	}
	s := &d.o.sample
	var list []*value
	for _, number := range s.numbersOf(d.o.at(l, d.head)) {
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

// rareValue returns a value of a random attribute; nil when there is none.
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

// creator asks for an account's entities. Half of the accounts are creators of
// a random entity, so that an account is as likely as it is busy; the other
// half are drawn evenly.
func (d *draws) creator(limit int) Op {
	if d.r.IntN(2) == 0 {
		if l := d.live(d.head); l != none {
			return d.withValue(byCreator, d.o.lives[l].creator.String(), limit)
		}
	}
	return d.withAnyOf(byCreator, "", limit)
}

// modifiedAround asks for the entities last modified in a range of blocks
// around a random entity's last change. The length of the range is a power of
// two, from one block up to the whole history.
func (d *draws) modifiedAround(limit int) Op {
	at, first := d.head, d.head
	if l := d.live(d.head); l != none {
		at, first = uint64(d.o.at(l, d.head).from), d.o.first()
	}
	length := uint64(1) << d.r.IntN(bits.Len64(d.head-min(first, d.head))+1)
	from := at - min(at, d.r.Uint64N(length))
	return d.scan(question{topic: byWindow, from: from, to: from + length}, limit)
}
