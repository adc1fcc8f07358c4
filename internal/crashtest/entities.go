package crashtest

import (
	"context"
	"slices"

	"github.com/varvedb/varve/store"
)

// entityWorker applies blocks.
type entityWorker struct {
	*worker
	ents    *store.Entities
	history *history
	fresh   bool // the journal is empty
}

func newEntityWorker(w *worker, records []record) (*entityWorker, error) {
	h, err := newHistory(records)
	return &entityWorker{worker: w, history: h, fresh: len(records) == 0}, err
}

func (w *entityWorker) open(ctx context.Context) (err error) {
	w.ents, err = w.db.Entities(ctx, store.EntityOptions{Layout: w.Layout})
	return err
}

func (w *entityWorker) phases() []phase {
	return []phase{
		{stepApply, 80}, {stepLoad, 5}, {stepRewind, 4}, {stepPrune, 1},
		{phaseCheckpoint, 4}, {phaseMerge, 4}, {phaseReopen, 1}, {phaseBetween, 1},
	}
}

func (w *entityWorker) step(ctx context.Context, phase string) error {
	switch phase {
	case phaseCheckpoint:
		return w.checkpoint(ctx)
	case phaseMerge:
		return w.ents.Settle(ctx)
	case phaseBetween:
		w.pause()
		return nil
	}
	r, ok := w.draw(phase)
	if !ok {
		return nil
	}
	s, err := w.history.next(r)
	if err != nil {
		return err
	}
	if err := w.journal.announce(r); err != nil {
		return err
	}
	w.history.announce(s)
	if w.EarlyAck {
		if err := w.journal.acknowledge(record{Ack: true}); err != nil {
			return err
		}
	}
	if err := w.do(ctx, s); err != nil {
		return err
	}
	w.history.acked = len(w.history.states) - 1
	if w.EarlyAck {
		return nil
	}
	return w.journal.acknowledge(record{Ack: true})
}

// The greatest distances from the head, in blocks, of a rewind and of a prune.
const (
	rewindDepth = 12
	pruneDepth  = 40
)

// draw draws a step; there is none when the store is too small for it.
func (w *entityWorker) draw(name string) (r record, ok bool) {
	last := w.history.last()
	head := last.head().Block
	r = record{Step: name, Seed: w.rng.Uint64()}
	switch name {
	case stepRewind:
		r.To = head - min(head, uint64(w.rng.IntN(rewindDepth)))
		return r, last.model.Rewind(r.To) == nil // last is a copy
	case stepPrune:
		r.To = head - min(head, uint64(2+w.rng.IntN(pruneDepth)))
		return r, r.To > last.horizon && !w.NoPrune
	}
	return r, true
}

func (w *entityWorker) do(ctx context.Context, s *step) error {
	switch s.Step {
	case stepRewind:
		return w.ents.Rewind(ctx, s.To)
	case stepPrune:
		return w.ents.Prune(ctx, s.To)
	case stepApply:
		_, err := w.ents.Apply(ctx, s.blocks[0])
		return err
	}
	blocks := func(yield func(store.Block, error) bool) {
		for _, b := range s.blocks {
			if !yield(b, nil) {
				return
			}
		}
	}
	_, err := w.ents.Load(ctx, blocks, store.LoadOptions{Changes: s.changes})
	return err
}

// commit applies a block that is not part of the history.
func (w *entityWorker) commit(ctx context.Context, i int) error {
	head, err := w.ents.Head(ctx)
	if err != nil {
		return err
	}
	_, err = w.ents.Apply(ctx, store.Block{Number: head.Block + 1, Ops: []store.Op{{
		Kind: store.Create, Key: store.Key{0xff, byte(i), byte(i >> 8)}, BTL: 1000, Content: []byte("a small payload"),
		StringAttributes: map[string]string{"group": "g1"}, NumericAttributes: map[string]uint64{"n": uint64(i)},
	}}})
	return err
}

// check finds out in which of the states that the journal allows the store is,
// compares everything with that state, and records it.
func (w *entityWorker) check(ctx context.Context) error {
	summary, err := w.ents.Summary(ctx)
	if err != nil {
		return err
	}
	head, err := w.ents.Head(ctx)
	if err != nil {
		return err
	}
	found, ok := w.history.find(head, summary.Horizon, w.Lossy)
	if !ok {
		return w.unknown(head, summary.Horizon)
	}
	if err := w.compare(ctx, &w.history.states[found]); err != nil {
		return err
	}
	w.say("found", "%d %d", max(found-w.history.acked, 0), max(w.history.acked-found, 0))
	if w.fresh {
		return nil
	}
	w.history.resume(found)
	return w.journal.acknowledge(record{Resumed: true, State: found})
}

// unknown tells what is wrong with a head.
func (w *entityWorker) unknown(head store.BlockHead, horizon uint64) error {
	h := w.history
	acked, announced := h.states[h.acked], h.last()
	known := slices.IndexFunc(h.states, func(s state) bool { return s.head() == head && s.horizon == horizon })
	if known >= 0 {
		return violation("%d acknowledged steps are lost: the store is at block %d, acknowledged was block %d", h.acked-known, head.Block, acked.head().Block)
	}
	return violation("the store is in no state that it ever had: block %d with digest %s and horizon %d; acknowledged was block %d with digest %s and horizon %d, announced up to block %d",
		head.Block, head.Digest, horizon, acked.head().Block, acked.head().Digest, acked.horizon, announced.head().Block)
}
