package scaler

import (
	"fmt"
	"iter"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Parts is a history of a profile in two parts: the blocks that fill a store,
// and the blocks that are written to it afterwards.
type Parts struct {
	Totals // of the whole history

	// First has the blocks up to a share of the history's time. Rest has the
	// blocks after it: the remaining history, and then endless copies of the
	// whole history under new keys.
	First, Rest Source
}

// Split splits a history at a share of its time, above 0 and up to 1. Blocks
// are merged into blocks of about perBlock operations, as Merged does, because
// most blocks of a profile are empty or create one entity; 0 leaves them
// unmerged.
func Split(p Profile, o Options, share float64, perBlock int) (*Parts, error) {
	if !(share > 0 && share <= 1) || perBlock < 0 {
		return nil, fmt.Errorf("share %v, want above 0 and up to 1; %d operations a block, want none or more", share, perBlock)
	}
	plan, err := Plan(p, o)
	if err != nil {
		return nil, err
	}
	whole := func() iter.Seq2[entity.Block, error] { return Stream(p, o) }
	cut := plan.FirstBlock - 1 + uint64(share*float64(plan.Blocks))
	after := o
	after.From = cut + 1
	rest := func() iter.Seq2[entity.Block, error] {
		return func(yield func(entity.Block, error) bool) {
			for b, err := range Stream(p, after) {
				if !yield(b, err) {
					return
				}
			}
			Continue(whole, ScaleOptions{Factor: 1, Seed: o.Seed}, plan.FirstBlock, plan.LastBlock)(yield)
		}
	}
	first := func() iter.Seq2[entity.Block, error] { return Until(whole(), cut) }
	if perBlock == 0 {
		return &Parts{plan, first, rest}, nil
	}
	merged := func() iter.Seq2[entity.Block, error] { return Merged(first(), perBlock) }
	return &Parts{plan, merged, func() iter.Seq2[entity.Block, error] {
		return func(yield func(entity.Block, error) bool) {
			// The pending operations of the first part are computed from the
			// same operations without payloads.
			g := newMerger(perBlock)
			for b, err := range Until(Stream(minimalPayloads(p), o), cut) {
				if err != nil {
					yield(entity.Block{}, err)
					return
				}
				g.pass(&b)
			}
			g.run(rest(), yield)
		}
	}}, nil
}

// minimalPayloads returns the profile with minimal payloads. Everything else stays the
// same, because each value has a separate random sequence.
func minimalPayloads(p Profile) Profile {
	p.Kinds = slices.Clone(p.Kinds)
	for i := range p.Kinds {
		p.Kinds[i].Payload.Size = Histogram{{Permille: 1000, From: MinPayload, To: MinPayload}}
	}
	return p
}

// Until streams the blocks up to a number.
func Until(blocks iter.Seq2[entity.Block, error], last uint64) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range blocks {
			if err == nil && b.Number > last || !yield(b, err) {
				return
			}
		}
	}
}
