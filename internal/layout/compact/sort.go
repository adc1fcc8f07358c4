package compact

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
)

// sortable is a match with what it is sorted by.
type sortable struct {
	v        *version
	missing  bool
	text     string
	number   uint64
	sequence uint64
	size     uint64
}

// sorted hands out matches in the order of an attribute. It holds all of them,
// or with a limit a little more than that many.
func (v *view) sorted(ctx context.Context, c candidates, req layout.Request, out *output) error {
	compare := comparison(req.Order)
	after := positionOf(req.After)
	read := reader(req.Order, v.names)
	var list []sortable
	cut := func() {
		slices.SortFunc(list, compare)
		if req.Limit > 0 && len(list) > req.Limit {
			clear(list[req.Limit:])
			list = list[:req.Limit]
		}
	}
	err := v.matches(ctx, c, req.Expr, math.MaxInt64, 0, func(r *version, rec *record) error {
		s := sortable{v: r, sequence: rec.sequence, size: rec.size}
		read(&s, rec)
		if after != nil && compare(s, *after) <= 0 {
			return nil
		}
		list = append(list, s)
		if req.Limit > 0 && len(list) >= 2*req.Limit+1024 {
			cut()
		}
		return nil
	})
	if err != nil {
		return err
	}
	cut()
	for i := range list {
		if err := out.add(ctx, list[i].v, &record{size: list[i].size}); err != nil {
			return err
		}
	}
	return nil
}

// reader returns how to read what a version is sorted by.
func reader(order layout.Order, n *names) func(s *sortable, rec *record) {
	if order.Name == "" {
		return func(*sortable, *record) {}
	}
	var now *sortable
	var m matcher
	if order.Kind == entity.Numeric {
		m = numberMatcher(order.Name, n, func(number uint64) bool { now.number = number; return true })
	} else {
		m = textMatcher(order.Name, n, func(text []byte) bool { now.text = string(text); return true })
	}
	return func(s *sortable, rec *record) {
		now = s
		s.missing = !m(s.v, rec)
	}
}

// positionOf returns what stands where a page ended, or nil.
func positionOf(pos *layout.Position) *sortable {
	if pos == nil {
		return nil
	}
	return &sortable{
		v: &version{key: pos.Key}, missing: pos.Missing, sequence: pos.Sequence,
		text: pos.Value.Text, number: pos.Value.Number,
	}
}

// comparison returns the order of results: by the attribute, without it last,
// then newest first, then by key.
func comparison(order layout.Order) func(a, b sortable) int {
	return func(a, b sortable) int {
		if a.missing != b.missing {
			if b.missing {
				return -1
			}
			return 1
		}
		if !a.missing && order.Name != "" {
			n := cmp.Compare(a.text, b.text)
			if order.Kind == entity.Numeric {
				n = cmp.Compare(a.number, b.number)
			}
			if order.Desc {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		if n := cmp.Compare(b.sequence, a.sequence); n != 0 {
			return n
		}
		return bytes.Compare(a.v.key[:], b.v.key[:])
	}
}
