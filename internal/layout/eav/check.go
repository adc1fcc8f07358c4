package eav

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// versionRows has the rows of one version, as stored or as expected.
type versionRows struct {
	to      uint64
	strings map[string]string
	numbers map[string]uint64
	twice   bool // there are two payload rows, or two rows of an attribute
}

// entityRows has the versions of one entity by their first block.
type entityRows map[uint64]*versionRows

func (r entityRows) at(from, to uint64) *versionRows {
	v := r[from]
	if v == nil {
		v = &versionRows{to: to, strings: map[string]string{}, numbers: map[string]uint64{}}
		r[from] = v
	}
	return v
}

// Check implements layout.Layout. Each version's attribute rows must equal the
// attributes in its payload row, and be valid over the same blocks. The three
// tables are read in parallel in key order, so that one entity is held at a
// time.
func (l *Layout) Check(ctx context.Context, payloads, texts, numbers driver.Querier, _ bool, report func(problem string) bool) error {
	p, err := l.follow(ctx, payloads, "check_payloads")
	if err != nil {
		return err
	}
	defer p.rows.Close()
	s, err := l.follow(ctx, texts, "check_strings")
	if err != nil {
		return err
	}
	defer s.rows.Close()
	n, err := l.follow(ctx, numbers, "check_numbers")
	if err != nil {
		return err
	}
	defer n.rows.Close()
	for p.key != nil || s.key != nil || n.key != nil {
		key := lowest(p.key, s.key, n.key)
		want, got := entityRows{}, entityRows{}
		err := p.entity(key, want, (*tableRows).scanPayload)
		if err == nil {
			err = s.entity(key, got, (*tableRows).scanAttribute)
		}
		if err == nil {
			err = n.entity(key, got, (*tableRows).scanAttribute)
		}
		if err != nil {
			return err
		}
		if !l.compare(key, want, got, report) {
			return nil
		}
	}
	return nil
}

func lowest(keys ...[]byte) (low []byte) {
	for _, key := range keys {
		if key != nil && (low == nil || bytes.Compare(key, low) < 0) {
			low = key
		}
	}
	return bytes.Clone(low)
}

// tableRows reads a table one row ahead.
type tableRows struct {
	rows     driver.Rows
	name     string
	key      []byte // of the next row; nil at the end
	from, to int64
	a, b     []byte
	n        uint64
	number   bool
}

func (l *Layout) follow(ctx context.Context, q driver.Querier, name string) (*tableRows, error) {
	rows, err := l.sql.Query(ctx, q, name)
	if err != nil {
		return nil, err
	}
	t := &tableRows{rows: rows, name: name, number: name == "check_numbers"}
	return t, t.next()
}

func (t *tableRows) next() error {
	t.key = nil
	if !t.rows.Next() {
		return t.rows.Err()
	}
	last := any(&t.b)
	if t.number {
		last = &t.n
	}
	if err := t.rows.Scan(&t.key, &t.from, &t.to, &t.a, last); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if t.key == nil {
		t.key = []byte{}
	}
	return nil
}

// entity scans the rows of one key.
func (t *tableRows) entity(key []byte, into entityRows, scan func(*tableRows, *versionRows) error) error {
	for t.key != nil && bytes.Equal(t.key, key) {
		if err := scan(t, into.at(uint64(t.from), uint64(t.to))); err != nil {
			return err
		}
		if err := t.next(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableRows) scanAttribute(v *versionRows) error {
	if uint64(t.to) != v.to {
		v.to = badEnd
	}
	before := len(v.strings) + len(v.numbers)
	if t.number {
		v.numbers[string(t.a)] = t.n
	} else {
		v.strings[string(t.a)] = string(t.b)
	}
	v.twice = v.twice || before == len(v.strings)+len(v.numbers)
	return nil
}

// badEnd marks a version whose rows disagree about its last block.
const badEnd = 1<<64 - 1

func (t *tableRows) scanPayload(v *versionRows) error {
	v.twice = v.twice || len(v.numbers) > 0
	err := eachString(t.a, func(name, value string) error {
		v.strings[name] = value
		return nil
	})
	if err == nil {
		err = eachNumber(t.b, func(name string, value uint64) error {
			v.numbers[name] = value
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("%w: payload of 0x%x from block %d: %w", driver.ErrCorrupt, t.key, t.from, err)
	}
	return nil
}

// compare reports the differences between an entity's rows and its payload
// rows. It returns false when report did.
func (l *Layout) compare(key []byte, want, got entityRows, report func(string) bool) bool {
	say := func(problem string) bool { return report(fmt.Sprintf("entity 0x%x, %s", key, problem)) }
	if problem := l.lifetimes(want); problem != "" && !say(problem) {
		return false
	}
	for from, w := range want {
		problem := "no attribute rows"
		if g := got[from]; g != nil {
			problem = l.difference(w, g)
		}
		if problem != "" && !say(fmt.Sprintf("version of block %d: %s", from, problem)) {
			return false
		}
	}
	for from := range got {
		if want[from] == nil && !say(fmt.Sprintf("version of block %d: attribute rows without a payload", from)) {
			return false
		}
	}
	return true
}

// difference describes the first difference between a version's attribute rows
// and its payload row.
func (l *Layout) difference(want, got *versionRows) string {
	if want.twice {
		return "it has two payloads"
	}
	if got.twice {
		return "an attribute has two rows"
	}
	if l.schema.Temporal && got.to != want.to {
		return fmt.Sprintf("its payload ends at block %d, its attributes do not", want.to)
	}
	texts := differs("string", "%q", want.strings, got.strings)
	if problem := cmp.Or(texts, differs("numeric", "%d", want.numbers, got.numbers)); problem != "" {
		return problem
	}
	if len(got.strings) > len(want.strings) || len(got.numbers) > len(want.numbers) {
		return "attribute rows that are not beside the payload"
	}
	if end := want.numbers[entity.AttrExpiration]; want.to > end {
		return fmt.Sprintf("it ends at block %d, above its expiration %d", want.to, end)
	}
	return ""
}

func differs[T comparable](kind, verb string, want, got map[string]T) string {
	for name, value := range want {
		if has, ok := got[name]; !ok {
			return fmt.Sprintf("%s attribute %q has no row", kind, name)
		} else if has != value {
			return fmt.Sprintf("%s attribute %q is "+verb+" in its row and "+verb+" beside the payload", kind, name, has, value)
		}
	}
	return ""
}

// lifetimes describes the first impossible interval among an entity's versions:
// one that ends before it begins, two that overlap, or a gap between two
// versions of the same creation.
func (l *Layout) lifetimes(versions entityRows) string {
	if !l.schema.Temporal {
		return ""
	}
	var last *versionRows
	var began uint64
	for _, from := range slices.Sorted(maps.Keys(versions)) {
		v := versions[from]
		same := last != nil && last.numbers[entity.AttrSequence] == v.numbers[entity.AttrSequence]
		switch {
		case v.to < from:
			return fmt.Sprintf("version of block %d: it ends at block %d", from, v.to)
		case last != nil && last.to > from:
			return fmt.Sprintf("the versions of blocks %d and %d overlap", began, from)
		case same && last.to < from:
			return fmt.Sprintf("between the versions of blocks %d and %d one is missing", began, from)
		}
		last, began = v, from
	}
	return ""
}
