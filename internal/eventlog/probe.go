package eventlog

import (
	"context"
	"errors"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Probe asks for the first event above a position that matches an item, of those
// that have postings.
type Probe struct {
	Item  *Item
	After uint64
	Found uint64 // its position, zero when there is none
}

// probeRows are the rows of a term that a probe reads first.
const probeRows = 2

// Probe answers probes, many with each statement.
func (l *Log) Probe(ctx context.Context, q driver.Querier, probes []*Probe) error {
	if !l.posted {
		return l.probeGIN(ctx, q, probes)
	}
	s := search{log: l, q: q, rows: probeRows}
	streams := make([]*stream, len(probes))
	var lists []*list
	for i, p := range probes {
		if !p.Item.all() {
			streams[i] = s.stream(p.Item)
			streams[i].move(p.After + 1)
			lists = append(lists, streams[i].lists...)
		}
	}
	if err := s.fill(ctx, lists); err != nil {
		return err
	}
	for i, p := range probes {
		var err error
		if streams[i] == nil {
			p.Found, err = l.firstAbove(ctx, q, p.After)
		} else {
			p.Found, _, err = s.next(ctx, streams[i], p.After+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// firstAbove returns the first position above another one, zero when there is none.
func (l *Log) firstAbove(ctx context.Context, q driver.Querier, after uint64) (uint64, error) {
	var at int64
	err := driver.QueryRow(ctx, q, l.schema.Statements["first_above"], []any{position(after)}, &at)
	if errors.Is(err, driver.ErrNoRows) {
		err = nil
	}
	return uint64(at), err
}

// all tells whether an item matches every event.
func (it *Item) all() bool { return len(it.types) == 0 && len(it.tags) == 0 }

func sameShape(a, b *Item) bool { return len(a.types) == len(b.types) && len(a.tags) == len(b.tags) }

// sortProbes puts probes of one shape side by side.
func sortProbes(probes []*Probe) {
	slices.SortStableFunc(probes, func(a, b *Probe) int {
		if d := len(a.Item.tags) - len(b.Item.tags); d != 0 {
			return d
		}
		return len(a.Item.types) - len(b.Item.types)
	})
}
