package eventlog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// Probe asks for the first event above a position that matches an item.
type Probe struct {
	Item  *Item
	After uint64
	Found uint64 // its position, zero when there is none
}

// probeSizes are the probes of one statement, largest first: few statements, and
// few different texts.
var probeSizes = []int{32, 8, 4, 2, 1}

// Probe answers probes. Those of one shape share statements, so that a group of
// appends costs few.
func (l *Log) Probe(ctx context.Context, q driver.Querier, probes []*Probe) error {
	for len(probes) > 0 {
		first := probes[0].Item
		n := 1
		for n < len(probes) && sameShape(first, probes[n].Item) {
			n++
		}
		if err := l.probeAlike(ctx, q, probes[:n]); err != nil {
			return err
		}
		probes = probes[n:]
	}
	return nil
}

func sameShape(a, b *Item) bool { return len(a.types) == len(b.types) && len(a.tags) == len(b.tags) }

// SortProbes puts probes of one shape side by side.
func SortProbes(probes []*Probe) {
	slices.SortStableFunc(probes, func(a, b *Probe) int {
		if d := len(a.Item.tags) - len(b.Item.tags); d != 0 {
			return d
		}
		return len(a.Item.types) - len(b.Item.types)
	})
}

func (l *Log) probeAlike(ctx context.Context, q driver.Querier, probes []*Probe) error {
	for _, size := range probeSizes {
		for len(probes) >= size {
			if err := l.probeSome(ctx, q, probes[:size]); err != nil {
				return err
			}
			probes = probes[size:]
		}
	}
	return nil
}

func (l *Log) probeSome(ctx context.Context, q driver.Querier, probes []*Probe) (err error) {
	it := probes[0].Item
	shape := it.shape(append(make([]byte, 0, 16), 'p', byte(len(probes))))
	text := l.texts.get(shape, func() string { return l.probeText(it, len(probes)) })
	args := make([]any, 0, 8*len(probes))
	for _, p := range probes {
		args = l.args(args, p.Item, position(p.After))
	}
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return errors.Join(errors.New("no answer to a condition"), rows.Err())
	}
	found := make([]int64, len(probes))
	dests := make([]any, len(probes))
	for i := range found {
		dests[i] = &found[i]
	}
	if err := rows.Scan(dests...); err != nil {
		return err
	}
	for i, p := range probes {
		p.Found = uint64(found[i])
	}
	return rows.Err()
}

// probeText selects one number for each probe.
func (l *Log) probeText(it *Item, n int) string {
	list := l.branches(it)
	terms := make([]string, len(list))
	for i, b := range list {
		terms[i] = "(SELECT " + b.position + " FROM " + b.from + " WHERE " + and(b.where, b.position+" > ?") +
			order(b.position, false) + " LIMIT 1)"
	}
	one := "coalesce(" + strings.Join(append(terms, "0"), ", ") + ")"
	return "SELECT " + one + strings.Repeat(", "+one, n-1)
}
