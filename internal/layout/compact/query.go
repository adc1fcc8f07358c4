package compact

import (
	"bytes"
	"context"
	"iter"
	"math"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Query implements layout.View.
func (v *view) Query(ctx context.Context, req layout.Request) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		v.random(req.Limit > 0 || !req.Content) // else payloads lie in the order of creation
		out := &output{v: v, attributes: req.Attributes, content: req.Content, yield: yield}
		for m, err := range v.matches(ctx, req) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !out.add(ctx, m.v, m.rec.size) {
				return
			}
		}
		out.flush(ctx)
	}
}

// matches plans a query and scans for its matches, newest first or in an order.
func (v *view) matches(ctx context.Context, req layout.Request) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		newest, after := len(req.Order) == 0 && v.p.unordered == 0, req.After
		if !newest {
			after = nil
		}
		p, err := v.plan(ctx, req.Expr, after)
		if err != nil {
			yield(match{}, err)
			return
		}
		_, remote := v.q.(driver.Remote)
		p.window.whole = req.Content && remote && !v.l.opts.Apart
		left := req.Limit
		found := v.sorted(ctx, p, req, &left)
		if newest {
			found = v.scan(ctx, p, &left)
		}
		for m, err := range found {
			if err == nil && after != nil && !follows(m.rec.sequence, &m.v.key, after) {
				continue
			}
			left--
			if !yield(m, err) || left == 0 {
				return
			}
		}
	}
}

// follows reports whether an entity comes after a position by sequence and key.
func follows(sequence uint64, key *entity.Key, pos *layout.Position) bool {
	if sequence != pos.Sequence {
		return sequence < pos.Sequence
	}
	return bytes.Compare(key[:], pos.Key[:]) > 0
}

// idAt returns the id of the entity at a position, or a bound above it when it is not known.
func (v *view) idAt(ctx context.Context, pos *layout.Position) (int64, error) {
	below := int64(math.MaxInt64)
	see := func(r *version) error {
		rec, err := parse(r.data)
		if err == nil && r.key == pos.Key && rec.sequence == pos.Sequence {
			below = r.id
		}
		return err
	}
	for _, r := range v.overlay().live {
		if err := see(r); err != nil || below != math.MaxInt64 {
			return below, err
		}
	}
	for _, current := range []bool{true, false} {
		if err := v.versionsOfKeys(ctx, current, []any{hashKey(pos.Key)}, see); err != nil || below != math.MaxInt64 {
			return below, err
		}
	}
	return below, nil
}

// Count implements layout.View. What postings know exactly is counted without versions;
// few candidates are rather compared than long terms looked up.
func (v *view) Count(ctx context.Context, e query.Expr) (n uint64, err error) {
	v.random(false) // a run's pages lie in the order of keys
	p, err := v.plan(ctx, e, nil)
	if err != nil {
		return 0, err
	}
	if !v.past {
		c, err := p.filter.within(ctx, v.all())
		if err == nil && !c.exact && (c.negated || c.ids.Len() > enoughIn(v.all())) {
			if err = p.filter.find(ctx, noLimit); err == nil {
				c, err = p.filter.within(ctx, v.all())
			}
		}
		if err == nil && c.exact {
			n, err = v.countExact(ctx, c)
			p.filter = v.known(bitmap.Set{}, true) // what is left is the overlay's
		}
		if err != nil {
			return 0, err
		}
	}
	for _, err := range v.scan(ctx, p, new(int)) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// countExact counts the visible versions in the tables among exact candidates, without those that the overlay has.
func (v *view) countExact(ctx context.Context, c candidates) (uint64, error) {
	ended := &having{v: v, spans: []lsm.Span{lsm.Within(attrExpiration, encodeNumber(0), encodeNumber(uint64(v.at)+1))}}
	for _, pages := range []int64{0, noLimit} { // most often they are few
		if err := ended.find(ctx, pages); err != nil {
			return 0, err
		}
	}
	gone := ended.ids
	// Postings may have entities already that a merge has yet to write.
	touched, args := bitmap.Set{}, []any(nil)
	for id := range v.overlay().versions {
		touched.Add(id)
		args = append(args, id)
	}
	c.ids.Subtract(touched)
	gone.Subtract(touched)
	if !c.negated {
		c.ids.Subtract(gone)
		return uint64(c.ids.Len()), nil
	}
	c.ids.Union(gone)
	err := v.l.sql.EachIn(ctx, v.q, "existing", args, nil, func(rows driver.Rows) error {
		var id int64
		err := rows.Scan(&id)
		if err == nil {
			c.ids.Add(id)
		}
		return err
	})
	return uint64(v.p.live) - uint64(c.ids.Len()), err
}
