package crashtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// entityWorker applies blocks.
type entityWorker struct {
	*worker
	ents    *store.Entities
	history *history
}

func newEntityWorker(w *worker, records []record) (*entityWorker, error) {
	h, err := newHistory(records)
	return &entityWorker{worker: w, history: h}, err
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

// The greatest distances from the head, in blocks, of a rewind and of a prune.
const (
	rewindDepth = 12
	pruneDepth  = 40
)

// draw draws a step; there is none when the store is too small for it.
func (w *entityWorker) draw(name string) (r record, ok bool) {
	last := w.history.last()
	head := last.head().Number
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

func (w *entityWorker) commit(ctx context.Context, i int) error {
	head, err := w.ents.Head(ctx)
	if err != nil {
		return err
	}
	_, err = w.ents.Apply(ctx, entity.Block{Number: head.Number + 1, Ops: []entity.Op{{
		Kind: entity.Create, Key: entity.Key{0xff, byte(i), byte(i >> 8)}, BTL: 1000, Content: []byte("a small payload"),
		StringAttributes: map[string]string{"group": "g1"}, NumericAttributes: map[string]uint64{"n": uint64(i)},
	}}})
	return err
}

// compare finds out in which of the states that the journal allows the store is,
// and compares everything with that state.
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

// unknown tells what is wrong with a head.
func (w *entityWorker) unknown(head store.BlockHeader, horizon uint64) error {
	h := w.history
	acked, announced := h.states[h.acked], h.last()
	known := slices.IndexFunc(h.states, func(s state) bool { return s.head() == head && s.horizon == horizon })
	if known >= 0 {
		return violation("%d acknowledged steps are lost: the store is at block %d, acknowledged was block %d", h.acked-known, head.Number, acked.head().Number)
	}
	return violation("the store is in no state that it ever had: block %d with digest %s and horizon %d; acknowledged was block %d with digest %s and horizon %d, announced up to block %d",
		head.Number, head.Digest, horizon, acked.head().Number, acked.head().Digest, acked.horizon, announced.head().Number)
}

// pastBlocks is how many past blocks are compared.
const pastBlocks = 3

// compareState lets the store check itself and compares it with a state, at the head
// and at past blocks.
func (w *entityWorker) compareState(ctx context.Context, want *state) error {
	if !w.checked {
		if _, err := w.ents.Verify(ctx); errors.Is(err, store.ErrCorrupt) {
			return violation("%v", err)
		} else if err != nil {
			return err
		}
	}
	head := want.head()
	if err := w.compareAt(ctx, want, store.Head); err != nil || head.Empty || !w.ents.Temporal() {
		return err
	}
	for range pastBlocks {
		at := want.horizon + w.rng.Uint64N(head.Number-want.horizon+1)
		if err := w.compareAt(ctx, want, at); err != nil {
			return err
		}
	}
	return nil
}

// orders are those in which results are asked for, in turn.
var orders = [][]store.Order{
	nil, {{Name: "n", Kind: entity.Numeric}}, {{Name: entity.AttrExpiration, Desc: true}},
	{{Name: "rare", Kind: entity.String, Desc: true}, {Name: "n", Kind: entity.Numeric}},
}

func (w *entityWorker) compareAt(ctx context.Context, want *state, at uint64) (err error) {
	model, err := want.model.At(at)
	if err != nil {
		return fmt.Errorf("model at block %d: %w", at, err)
	}
	s, err := w.ents.At(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i, q := range questions {
		order := orders[i%len(orders)]
		wanted, err := model.Query(q, order, 0, nil)
		if err != nil {
			return err
		}
		found, err := pages(ctx, s, q, store.QueryOptions{Order: order, Limit: i % 3 * 7})
		if err == nil && q == nil {
			err = alone(ctx, s, found)
		}
		if err != nil {
			return err
		}
		if err := sameEntities(wanted, found); err != nil {
			return violation("at block %d, query %v: %v", model.Block(), q, err)
		}
		n, err := s.Count(ctx, q)
		if err != nil {
			return err
		}
		if n != uint64(len(wanted)) {
			return violation("at block %d, count of %v is %d, should be %d", model.Block(), q, n, len(wanted))
		}
	}
	return nil
}

// alone compares entities with what they are when they are asked for one by one.
func alone(ctx context.Context, s *store.Snapshot, found []*entity.Entity) error {
	for _, e := range found {
		got, err := s.Get(ctx, e.Key)
		if err != nil {
			return err
		}
		if fingerprint(got) != fingerprint(e) {
			return violation("%s is another when asked for alone", e.Key)
		}
	}
	return nil
}

// pages reads a result, page by page where there is a limit.
func pages(ctx context.Context, s *store.Snapshot, q query.Expr, opts store.QueryOptions) (all []*entity.Entity, err error) {
	for {
		page, err := gather(s.Query(ctx, q, &opts))
		all = append(all, page...)
		if err != nil || opts.Limit == 0 || len(page) < opts.Limit {
			return all, err
		}
		if opts.After, err = s.Cursor(page[len(page)-1], &opts); err != nil {
			return all, err
		}
	}
}

func gather[T any](found iter.Seq2[T, error]) (all []T, err error) {
	for e, err := range found {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// sameEntities compares by the digest that the store itself chains: it covers all
// that a version has.
func sameEntities(want, got []*entity.Entity) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d entities, should be %d", len(got), len(want))
	}
	for i := range want {
		if want[i].Key != got[i].Key || fingerprint(want[i]) != fingerprint(got[i]) {
			return fmt.Errorf("place %d has %s of block %d, should have %s of block %d, or its content differs", i,
				got[i].Key, got[i].LastModifiedAtBlock, want[i].Key, want[i].LastModifiedAtBlock)
		}
	}
	return nil
}

// fingerprint covers everything that an entity has.
func fingerprint(e *entity.Entity) entity.Digest {
	return entity.Digest{1}.Next(entity.Changeset{Block: 1, Changes: []entity.Change{{Key: e.Key, New: e}}})
}
