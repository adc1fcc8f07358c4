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

// bound makes a window no larger than an expression allows.
func (v *view) bound(ctx context.Context, e query.Expr, w window) (window, error) {
	s := reachOf(e)
	w.high, w.from, w.to = min(w.high, v.p.nextID), int64(s.from), int64(s.to)
	if v.p.unordered != 0 || s.low == 0 && s.high == math.MaxUint64 {
		return w, nil
	}
	var err error
	if s.high < v.p.lastSequence {
		if _, w.high, err = v.search(ctx, s.high+1, w); err != nil {
			return w, err
		}
	}
	if s.low > 0 {
		w.low, _, err = v.search(ctx, s.low, w)
	}
	return w, err
}

// search returns ids of a window below which sequences are lower than one, and from which on they are not: to within
// enough ids, or after 12 look-ups. It guesses where between two known ones it lies, and looks so far beyond that
// from where it looked last that little is left when the guess is good. Every fourth time it halves what is left.
func (v *view) search(ctx context.Context, sequence uint64, w window) (low, high int64, err error) {
	left, right := uint64(0), v.p.lastSequence // the sequences about from and high
	low, high = w.low, w.high
	from, beyond := low, int64(0)
	for n := 0; n < 12 && high-from > minCandidates; n++ {
		middle := from + (high-from)/2
		if n%4 < 3 && left < sequence && sequence < right {
			part := float64(sequence-left) / float64(right-left)
			middle = min(max(from+int64(part*float64(high-from))+beyond, from), high-1)
		}
		found := false
		beyond = minCandidates / 2
		err := v.l.versions(ctx, v.q, "highest_current", []any{middle + 1, from}, func(r *version) error {
			rec, err := parse(r.data)
			if err != nil {
				return err
			}
			if found = true; rec.sequence >= sequence {
				high, right, beyond = r.id, rec.sequence, -minCandidates/2
			} else {
				low, from, left = r.id+1, middle+1, rec.sequence
			}
			return nil
		})
		if err != nil {
			return low, high, err
		}
		if !found {
			from = middle + 1
		}
	}
	return low, high, nil
}
