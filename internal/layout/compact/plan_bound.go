package compact

import (
	"context"
	"math"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Ids are given in the order of sequences, which begin with the block of creation. So a comparison of either bounds
// the ids that may match, and one of the block of the last change, which is no earlier, bounds them above. What was
// changed in other blocks is passed over by the database.

// reach is the sequences from low on and up to high, and the blocks of the last change from one on and up to another.
type reach struct{ low, high, from, to uint64 }

// reachOf returns what the versions that match an expression are within.
func reachOf(e query.Expr) reach {
	all := reach{high: math.MaxUint64, to: math.MaxInt64}
	switch e := e.(type) {
	case query.And:
		for _, term := range e.Terms {
			part := reachOf(term)
			all.low, all.high = max(all.low, part.low), min(all.high, part.high)
			all.from, all.to = max(all.from, part.from), min(all.to, part.to)
		}
	case query.Compare:
		first, last := uint64(0), uint64(math.MaxUint64)
		switch n := e.Value.Number; e.Op {
		case query.NotEqual:
		case query.Less, query.LessOrEqual:
			last = n
		case query.Equal:
			first, last = n, n
		default:
			first = n
		}
		switch e.Name {
		case entity.AttrSequence:
			all.low, all.high = first, last
		case entity.AttrCreatedAtBlock:
			all.low, all.high = entity.MakeSequence(min(first, entity.MaxBlockNumber), 0, 0), lastSequence(last)
		case entity.AttrLastModifiedAtBlock:
			all.from, all.to, all.high = min(first, math.MaxInt64), min(last, math.MaxInt64), lastSequence(last)
		}
	}
	return all
}

// lastSequence returns the highest sequence of a block.
func lastSequence(block uint64) uint64 {
	if block >= entity.MaxBlockNumber {
		return math.MaxUint64
	}
	return entity.MakeSequence(block+1, 0, 0) - 1
}

// bound returns the part of a window in which an expression can match.
func (v *view) bound(ctx context.Context, e query.Expr, w window) (window, error) {
	s := reachOf(e)
	w.high, w.from, w.to = min(w.high, v.p.nextID), int64(s.from), int64(s.to)
	if v.p.unordered != 0 {
		return w, nil
	}
	var err error
	if s.high < v.p.lastSequence {
		if _, w.high, err = v.bisect(ctx, s.high+1, w.low, w.high); err != nil {
			return w, err
		}
	}
	if s.low > 0 {
		w.low, _, err = v.bisect(ctx, s.low, w.low, w.high)
	}
	return w, err
}

// bisect narrows a range of ids: sequences are lower than the given one below low,
// and from high on they are not. Ids without a current version narrow down nothing,
// because their entities have ended, and can still be visible at a past block.
func (v *view) bisect(ctx context.Context, sequence uint64, low, high int64) (int64, int64, error) {
	for from := low; high-from > minCandidates; { // below from no current version is left to compare
		// The entity in the middle or, when that has ended, the one before it.
		middle := from + (high-from)/2
		next := middle + 1 // of from, unless the entity is behind the bound
		err := v.l.versions(ctx, v.q, "highest_current", []any{middle + 1, from}, func(r *version) error {
			rec, err := parse(r.data)
			if rec.sequence >= sequence {
				high, next = r.id, from
			} else {
				low = r.id + 1
			}
			return err
		})
		if err != nil {
			return low, high, err
		}
		from = next
	}
	return low, high, nil
}
