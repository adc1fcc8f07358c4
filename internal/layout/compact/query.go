package compact

import (
	"bytes"
	"context"
	"errors"
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
		out := &output{v: v, attributes: req.Attributes, content: req.Content, yield: yield}
		if len(req.Order) == 0 && v.p.unordered == 0 {
			out.end(ctx, v.newest(ctx, req, out))
		} else {
			out.end(ctx, v.sorted(ctx, req, out))
		}
	}
}

// newest hands out matches in the order of ids, which is that of sequences.
func (v *view) newest(ctx context.Context, req layout.Request, out *output) (err error) {
	below := int64(math.MaxInt64)
	if req.After != nil {
		if below, err = v.idAt(ctx, req.After); err != nil {
			return err
		}
	}
	left := req.Limit
	return v.matches(ctx, v.filter(req.Expr), req.Expr, below, &left, func(r *version, rec *record) error {
		if req.After != nil && !follows(rec.sequence, &r.key, req.After) {
			return nil
		}
		left--
		if err := out.add(ctx, r, rec); err != nil {
			return err
		}
		return stoppedIf(left == 0)
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
	for _, r := range v.overlay().live {
		if err := see(r); err != nil || below != math.MaxInt64 {
			return below, err
		}
	}
	return below, v.stored(ctx, pos.Key, see)
}

// Count implements layout.View. What postings know exactly is counted without versions;
// few candidates are rather compared than long terms looked up.
func (v *view) Count(ctx context.Context, e query.Expr) (n uint64, err error) {
	f, all := v.filter(e), v.brief()
	c := everything(false)
	if !v.past {
		if c, err = f.within(ctx, all); err == nil && !c.exact && (c.negated || c.ids.Len() > enoughIn(all)) {
			if _, err = f.learn(ctx, noLimit); err == nil {
				c, err = f.within(ctx, all)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	if c.exact {
		if n, err = v.countExact(ctx, c); err != nil {
			return 0, err
		}
		f = v.settled(bitmap.Set{}, true) // what is left is the overlay's
	}
	return n, v.matches(ctx, f, e, math.MaxInt64, new(int), func(*version, *record) error {
		n++
		return nil
	})
}

// countExact counts the visible versions in the tables among exact candidates,
// without those that the overlay has.
func (v *view) countExact(ctx context.Context, c candidates) (uint64, error) {
	ended := &holders{v: v, spans: []lsm.Span{lsm.Within(attrExpiration, encodeNumber(0), encodeNumber(uint64(v.at)+1))}}
	for _, pages := range []int64{0, noLimit} { // most often they are few
		if err := ended.try(ctx, pages); err != nil {
			return 0, err
		}
	}
	gone := ended.whole
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

// output turns versions into entities and hands them out, with their payloads
// if they are asked for, several at a time.
type output struct {
	v          *view
	attributes bool // attributes are asked for
	content    bool // payloads are
	yield      func(*entity.Entity, error) bool
	waiting    []*version
	bytes      uint64 // of payloads that are waited for
	stopped    bool
}

// outputBytes bounds the payloads that are read at once.
const (
	outputBytes = 1 << 20
	outputCount = 64
)

// add hands a version out, now or a little later. It returns errStopped when nobody
// wants more.
func (o *output) add(ctx context.Context, r *version, rec *record) error {
	o.waiting = append(o.waiting, r)
	if o.content {
		if o.bytes += rec.size; o.bytes < outputBytes && len(o.waiting) < outputCount {
			return nil
		}
	}
	return o.flush(ctx)
}

// flush hands out what waits.
func (o *output) flush(ctx context.Context) (err error) {
	list := o.waiting
	o.waiting, o.bytes = nil, 0
	if len(list) == 0 {
		return nil
	}
	var contents map[int64][]byte
	if o.content {
		if contents, err = o.v.contents(ctx, list); err != nil {
			return err
		}
	}
	dictionary := o.v.names.list()
	for _, r := range list {
		e, err := r.entity(dictionary, o.attributes)
		if err != nil {
			return err
		}
		e.Content = contents[r.content]
		if err := o.hand(e); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) hand(e *entity.Entity) error {
	o.stopped = !o.yield(e, nil)
	return stoppedIf(o.stopped)
}

// end hands out what waits, or an error. That more was not wanted is none.
func (o *output) end(ctx context.Context, err error) {
	if errors.Is(err, errStopped) {
		err = nil
	}
	if err == nil && !o.stopped {
		err = o.flush(ctx)
	}
	if err != nil && !o.stopped {
		o.yield(nil, err)
	}
}
