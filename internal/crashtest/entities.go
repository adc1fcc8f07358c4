package crashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

// entityWorker applies blocks.
type entityWorker struct {
	*worker
	ents    *store.Entities
	history *history
}

func (w *entityWorker) open(ctx context.Context) (err error) {
	w.ents, err = w.db.Entities(ctx, &store.EntityOptions{Layout: w.Layout})
	return err
}

func (w *entityWorker) phases() []phase {
	return []phase{
		{stepApply, 80}, {stepLoad, 5}, {stepRewind, 4}, {stepPrune, 1},
		{phaseCheckpoint, 4}, {phaseMerge, 4}, {phaseReopen, 1}, {phaseBetween, 1},
	}
}

func (w *entityWorker) grow(ctx context.Context) error { return w.step(ctx, stepApply) }

func (w *entityWorker) step(ctx context.Context, phase string) error {
	switch phase {
	case phaseCheckpoint:
		return w.checkpoint(ctx)
	case phaseMerge:
		return w.ents.Flush(ctx)
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
	ack := func() error { return w.journal.acknowledge(record{Ack: true}) }
	if w.EarlyAck {
		return errors.Join(ack(), w.do(ctx, s))
	}
	if err := w.do(ctx, s); err != nil {
		return err
	}
	w.history.acked = len(w.history.states) - 1
	return ack()
}

// The maximum distances from the head, in blocks, of a rewind and of a prune.
const (
	rewindDepth = 12
	pruneDepth  = 40
)

// draw draws a step; ok is false when the store is too small for it.
func (w *entityWorker) draw(name string) (r record, ok bool) {
	last := w.history.last()
	head := last.Head().Number
	r = record{Step: name, Seed: w.rng.Uint64()}
	switch name {
	case stepRewind:
		r.To = head - min(head, uint64(w.rng.IntN(rewindDepth)))
		return r, last.Rewind(r.To) == nil // last is a copy
	case stepPrune:
		r.To = head - min(head, uint64(2+w.rng.IntN(pruneDepth)))
		return r, r.To > last.Horizon() && !w.NoPrune
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
	blocks := func(yield func(entity.Block, error) bool) {
		for _, b := range s.blocks {
			if !yield(b, nil) {
				return
			}
		}
	}
	_, err := w.ents.Load(ctx, blocks, &store.LoadOptions{Changes: s.changes})
	return err
}

// compare finds which of the states that the journal allows the store is in, and
// compares everything with that state.
func (w *entityWorker) compare(ctx context.Context) (r record, found, lost int, err error) {
	summary, err := w.ents.Summary(ctx)
	if err != nil {
		return r, 0, 0, err
	}
	head, err := w.ents.Head(ctx)
	if err != nil {
		return r, 0, 0, err
	}
	at, ok := w.history.find(head, summary.Horizon, w.Lossy)
	if !ok {
		return r, 0, 0, w.unknown(head, summary.Horizon)
	}
	acked := w.history.acked
	return record{Resumed: true, State: at}, max(at-acked, 0), max(acked-at, 0), w.compareState(ctx, &w.history.states[at])
}

func (w *entityWorker) resume(_ context.Context, r record) error {
	w.history.resume(r.State)
	return w.journal.acknowledge(r)
}

// unknown describes a head that is not in the journal.
func (w *entityWorker) unknown(head store.BlockHeader, horizon uint64) error {
	h := w.history
	acked, announced := h.states[h.acked], h.last()
	known := slices.IndexFunc(h.states, func(m model.Model) bool { return m.Head() == head && m.Horizon() == horizon })
	if known >= 0 {
		return violation("%d acknowledged steps are lost: the store is at block %d, acknowledged was block %d", h.acked-known, head.Number, acked.Head().Number)
	}
	return violation("the store is in no state that it ever had: block %d with digest %s and horizon %d; acknowledged was block %d with digest %s and horizon %d, announced up to block %d",
		head.Number, head.Digest, horizon, acked.Head().Number, acked.Head().Digest, acked.Horizon(), announced.Head().Number)
}

// pastBlocks is how many past blocks are compared.
const pastBlocks = 3

// compareState runs the store's check and compares the store with a state, at
// the head and at past blocks.
func (w *entityWorker) compareState(ctx context.Context, want *model.Model) error {
	if !w.checked {
		if _, err := w.ents.Verify(ctx); errors.Is(err, store.ErrCorrupt) {
			return violation("%v", err)
		} else if err != nil {
			return err
		}
	}
	head := want.Head()
	if err := w.compareAt(ctx, want, store.Head); err != nil || head.Empty || !w.ents.Temporal() {
		return err
	}
	for range pastBlocks {
		at := want.Horizon() + w.rng.Uint64N(head.Number-want.Horizon()+1)
		if err := w.compareAt(ctx, want, at); err != nil {
			return err
		}
	}
	return nil
}

// asked is how many queries are asked at each block, besides the query for all
// entities.
const asked = 16

func (w *entityWorker) compareAt(ctx context.Context, want *model.Model, at uint64) (err error) {
	wanted, err := want.At(at)
	if err != nil {
		return fmt.Errorf("model at block %d: %w", at, err)
	}
	s, err := w.ents.At(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d := model.Drawer{Rand: w.rng}
	q := model.Question{Pages: 1}
	for range 1 + asked {
		if _, err := wanted.Ask(ctx, s, q); err != nil {
			return differs(err, "at block %d, query %v", wanted.Block(), q.Expr)
		}
		q = d.Question(wanted)
	}
	for _, e := range wanted.Visible() {
		got, err := s.Get(ctx, e.Key)
		if err == nil {
			err = model.Same([]*entity.Entity{e}, []*entity.Entity{got})
		}
		if err != nil {
			return differs(err, "at block %d, %s alone", wanted.Block(), e.Key)
		}
	}
	return nil
}

// differs returns a violation for an answer that differs from the model's.
func differs(err error, format string, args ...any) error {
	if errors.Is(err, model.ErrDiffers) {
		return violation(format+": %v", append(args, err)...)
	}
	return err
}
