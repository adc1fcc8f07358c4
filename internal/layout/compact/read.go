package compact

import (
	"bytes"
	"context"
	"iter"
	"math"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Query implements layout.Layout.
func (l *Layout) Query(ctx context.Context, q driver.Querier, at uint64, req layout.Request) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		v, err := l.readView(ctx, q, at)
		if err != nil {
			yield(nil, err)
			return
		}
		v.overlay = v.chain.overlay(&v.p, v.at)
		v.few = req.Limit > 0 && req.Order.Name == ""
		c, err := v.search(ctx, req.Expr)
		if err != nil {
			yield(nil, err)
			return
		}
		out := &output{v: v, content: req.Content, yield: yield}
		if req.Order.Name == "" && v.p.unordered == 0 {
			err = v.newest(ctx, c, req, out)
		} else {
			err = v.sorted(ctx, c, req, out)
		}
		if err == nil {
			err = out.flush(ctx)
		}
		if err != nil && !out.stopped {
			yield(nil, err)
		}
	}
}

// newest hands out matches in the order of ids, which is that of sequences.
func (v *view) newest(ctx context.Context, c candidates, req layout.Request, out *output) error {
	below := int64(math.MaxInt64)
	if req.After != nil {
		var err error
		if below, err = v.idAt(ctx, req.After); err != nil {
			return err
		}
	}
	left := req.Limit
	return v.matches(ctx, c, req.Expr, below, req.Limit, func(r *version, rec *record) (bool, error) {
		if req.After != nil && !follows(rec.sequence, &r.key, req.After) {
			return true, nil
		}
		left--
		more, err := out.add(ctx, r, rec)
		return more && left != 0, err
	})
}

// follows tells whether an entity comes after a position by sequence and key.
func follows(sequence uint64, key *entity.Key, pos *layout.Position) bool {
	if sequence != pos.Sequence {
		return sequence < pos.Sequence
	}
	return bytes.Compare(key[:], pos.Key[:]) > 0
}

// idAt returns the id of the entity at a position, or a bound above it when it
// is not known.
func (v *view) idAt(ctx context.Context, pos *layout.Position) (int64, error) {
	below := int64(math.MaxInt64)
	see := func(r *version) error {
		rec, err := parse(r.data)
		if err == nil && r.key == pos.Key && rec.sequence == pos.Sequence {
			below = r.id
		}
		return err
	}
	for _, r := range v.overlay.live {
		if err := see(r); err != nil || below != math.MaxInt64 {
			return below, err
		}
	}
	hash := []any{hashKey(pos.Key)}
	err := v.l.eachQuery(ctx, v.q, "current_by_key", 1, hash, nil, func(rows driver.Rows) error {
		r, err := scanVersion(rows)
		if err != nil {
			return err
		}
		return see(r)
	})
	if err != nil || below != math.MaxInt64 {
		return below, err
	}
	return below, v.l.eachQuery(ctx, v.q, "closed_by_key", 1, hash, nil, func(rows driver.Rows) error {
		var to int64
		r, err := scanVersion(rows, &to)
		if err != nil {
			return err
		}
		return see(r)
	})
}

// Count implements layout.Layout.
func (l *Layout) Count(ctx context.Context, q driver.Querier, at uint64, e query.Expr) (uint64, error) {
	v, err := l.readView(ctx, q, at)
	if err != nil {
		return 0, err
	}
	v.overlay = v.chain.overlay(&v.p, v.at)
	c, err := v.search(ctx, e)
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	if c.exact && !v.past {
		if n, err = v.countExact(ctx, c); err != nil {
			return 0, err
		}
		c = candidates{ids: idSet{}} // what is left is the overlay's
	}
	err = v.matches(ctx, c, e, math.MaxInt64, 0, func(*version, *record) (bool, error) {
		n++
		return true, nil
	})
	return n, err
}

// countExact counts the visible versions in the tables among exact candidates,
// without those that the overlay has.
func (v *view) countExact(ctx context.Context, c candidates) (uint64, error) {
	gone := candidates{ids: idSet{}}
	span := keysWithin(attrExpiration, encodeNumber(0), encodeNumber(uint64(v.at)+1))
	if _, err := v.readPostings(ctx, []keySpan{span}, noLimit, nil, &gone); err != nil {
		return 0, err
	}
	// Postings may have entities already that a merge has yet to write.
	touched := idSet{}
	for id := range v.overlay.versions {
		touched.add(id)
	}
	c.ids.subtract(touched)
	gone.ids.subtract(touched)
	if !c.negated {
		c.ids.subtract(gone.ids)
		return uint64(c.ids.count()), nil
	}
	if err := v.addTouched(ctx, gone.ids); err != nil {
		return 0, err
	}
	c.ids.union(gone.ids)
	return uint64(v.p.live) - uint64(c.ids.count()), nil
}

// addTouched adds those of the overlay's entities that are in the tables.
func (v *view) addTouched(ctx context.Context, ids idSet) error {
	var args []any
	for id := range v.overlay.versions {
		args = append(args, id)
	}
	return v.l.eachQuery(ctx, v.q, "existing", 1, args, nil, func(rows driver.Rows) error {
		var id int64
		err := rows.Scan(&id)
		if err == nil {
			ids.add(id)
		}
		return err
	})
}

// output turns versions into entities and hands them out, with their payloads
// if they are asked for, several at a time.
type output struct {
	v       *view
	content bool // payloads are asked for
	yield   func(*entity.Entity, error) bool
	waiting []*version
	bytes   uint64 // of payloads that are waited for
	stopped bool
}

// outputBytes bounds the payloads that are read at once.
const (
	outputBytes = 1 << 20
	outputCount = 64
)

// add hands a version out, now or a little later. It returns false when nobody
// wants more.
func (o *output) add(ctx context.Context, r *version, rec *record) (bool, error) {
	o.waiting = append(o.waiting, r)
	if o.content {
		if o.bytes += rec.size; o.bytes < outputBytes && len(o.waiting) < outputCount {
			return true, nil
		}
	}
	err := o.flush(ctx)
	return !o.stopped, err
}

// flush hands out what waits.
func (o *output) flush(ctx context.Context) error {
	list := o.waiting
	o.waiting, o.bytes = nil, 0
	if len(list) == 0 || o.stopped {
		return nil
	}
	var contents map[int64][]byte
	if o.content {
		var err error
		if contents, err = o.v.l.readContents(ctx, o.v.q, list); err != nil {
			return err
		}
	}
	dictionary := o.v.names.list()
	for _, r := range list {
		e, err := r.unpack(dictionary)
		if err != nil {
			return err
		}
		e.Content = contents[r.content]
		if !o.yield(e, nil) {
			o.stopped = true
			return nil
		}
	}
	return nil
}
