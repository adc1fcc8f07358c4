package compact

import (
	"context"
	"math"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Ids are given in the order of sequences, which begin with the block of creation. So a
// comparison of either bounds the ids that may match, and one of the block of the last
// change, which is no earlier, bounds them above.

// sequences is the sequences from low on and up to high.
type sequences struct{ low, high uint64 }

// sequencesOf returns the sequences that what matches an expression may have, and some
// more.
func sequencesOf(e query.Expr) sequences {
	all := sequences{0, math.MaxUint64}
	switch e := e.(type) {
	case query.And:
		for _, term := range e.Terms {
			part := sequencesOf(term)
			all.low, all.high = max(all.low, part.low), min(all.high, part.high)
		}
	case query.Compare:
		first, last := e.Value.Number, e.Value.Number
		switch e.Name {
		case entity.AttrSequence:
		case entity.AttrCreatedAtBlock, entity.AttrLastModifiedAtBlock:
			if first > entity.MaxBlockNumber {
				return all
			}
			first = entity.MakeSequence(first, 0, 0)
			last = first | (entity.MakeSequence(1, 0, 0) - 1)
		default:
			return all
		}
		switch below := e.Op == query.Less || e.Op == query.LessOrEqual; {
		case e.Op == query.NotEqual:
			return all
		case below || e.Op == query.Equal:
			all.high = last
		}
		if e.Name != entity.AttrLastModifiedAtBlock && e.Op != query.Less && e.Op != query.LessOrEqual {
			all.low = first
		}
	}
	return all
}

// How exactly bounds are found: to within so many ids, with so many look-ups at most.
const (
	boundIDs     = 128
	boundLookups = 12
)

// bound makes a window no larger than an expression's sequences allow.
func (v *view) bound(ctx context.Context, e query.Expr, w window) (window, error) {
	s := sequencesOf(e)
	w.high = min(w.high, v.p.nextID)
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

// search returns ids of a window below which sequences are lower than one, and from which on
// they are not. It guesses where between two known ones it lies, and halves what is left
// every other time.
func (v *view) search(ctx context.Context, sequence uint64, w window) (low, high int64, err error) {
	left, right := uint64(0), v.p.lastSequence // the sequences about from and high
	low, high = w.low, w.high
	from := low
	for n := 0; n < boundLookups && high-from > boundIDs; n++ {
		middle := from + (high-from)/2
		if n%2 == 0 && left < sequence && sequence < right {
			part := float64(sequence-left) / float64(right-left)
			middle = from + int64(part*float64(high-from))
		}
		found := false
		err := v.l.versions(ctx, v.q, "scan_current", []any{middle + 1, from, int64(1)}, func(r *version) error {
			rec, err := parse(r.data)
			if err != nil {
				return err
			}
			if found = true; rec.sequence >= sequence {
				high, right = r.id, rec.sequence
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
