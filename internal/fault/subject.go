package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// Subject is what a store holds and must answer.
type Subject interface {
	// Fill writes the next part of the history, of two.
	Fill(ctx context.Context, db *store.DB, rng *rand.Rand, part int) error

	// Verify opens the store's part of a database and compares every answer. It
	// returns an error of the store, or one that wraps ErrWrong, and whether the
	// store is behind what it was given.
	Verify(ctx context.Context, db *store.DB) (behind bool, err error)
}

// ErrWrong: an answer is not that of the model.
var ErrWrong = errors.New("wrong answer")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrWrong, fmt.Sprintf(format, args...))
}

// entities is a subject: a history of blocks.
type entities struct {
	layout  string
	blocks  int // of each part
	model   model.Model
	digests map[uint64]store.Digest
	numbers []uint64
	answers map[answerKey]store.Digest
}

type answerKey struct {
	block    uint64
	question int
}

// questions go through every index.
var questions = crashtest.Questions()

func (s *entities) Fill(ctx context.Context, db *store.DB, rng *rand.Rand, part int) error {
	ents, err := db.Entities(ctx, store.EntityOptions{Layout: s.layout, Backlog: 60})
	if err != nil {
		return err
	}
	if s.digests == nil {
		s.digests, s.answers = map[uint64]store.Digest{}, map[answerKey]store.Digest{}
	}
	for range s.blocks {
		b, err := crashtest.DrawBlock(rng, &s.model)
		if err := errors.Join(err, s.model.Apply(b)); err != nil {
			return err
		}
		applied, err := ents.Apply(ctx, b)
		if err != nil {
			return err
		}
		s.digests[b.Number] = applied.Head.Digest
		s.numbers = append(s.numbers, b.Number)
	}
	if part == 0 {
		return ents.Settle(ctx)
	}
	return nil
}

func (s *entities) Verify(ctx context.Context, db *store.DB) (behind bool, err error) {
	ents, err := db.Entities(ctx, store.EntityOptions{})
	if err != nil {
		return false, err
	}
	head, err := ents.Head(ctx)
	if err != nil {
		return false, err
	}
	if ents.Layout() != s.layout {
		return false, wrong("layout %s", ents.Layout())
	}
	if d, known := s.digests[head.Block]; !head.Empty && (!known || d != head.Digest) {
		return false, wrong("head %d with digest %s", head.Block, head.Digest)
	}
	behind = head.Block != s.numbers[len(s.numbers)-1]
	for _, at := range []uint64{head.Block, head.Block / 2, head.Block / 5} {
		if err := s.compare(ctx, ents, at); err != nil {
			return behind, err
		}
	}
	return behind, nil
}

func (s *entities) compare(ctx context.Context, ents *store.Entities, at uint64) (err error) {
	snap, err := ents.At(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	for i, q := range questions {
		want, err := s.answer(at, i)
		if err != nil {
			return err
		}
		var found []*store.Entity
		for e, err := range snap.Query(ctx, q, nil) {
			if err != nil {
				return err
			}
			found = append(found, e)
		}
		if got := crashtest.Fingerprint(found...); got != want {
			return wrong("at block %d, query %v gives %d entities or others", at, q, len(found))
		}
		if i > 0 {
			continue
		}
		for _, e := range found {
			got, err := snap.Get(ctx, e.Key)
			if err != nil {
				return err
			}
			if crashtest.Fingerprint(got) != crashtest.Fingerprint(e) {
				return wrong("at block %d, %s is another when asked for alone", at, e.Key)
			}
		}
		n, err := snap.Count(ctx, nil)
		if err != nil {
			return err
		}
		if n != uint64(len(found)) {
			return wrong("at block %d, %d of %d are counted", at, n, len(found))
		}
	}
	return nil
}

// answer is the fingerprint of the right answer, kept once it is known.
func (s *entities) answer(at uint64, question int) (store.Digest, error) {
	key := answerKey{at, question}
	if d, ok := s.answers[key]; ok {
		return d, nil
	}
	view, err := s.model.At(at)
	if err != nil {
		return store.Digest{}, err
	}
	list, err := view.Query(questions[question], nil, 0, nil)
	if err != nil {
		return store.Digest{}, err
	}
	s.answers[key] = crashtest.Fingerprint(list...)
	return s.answers[key], nil
}

// events is a subject: a log of events.
type events struct {
	appends int // of each part
	log     []store.SequencedEvent
}

func (s *events) Fill(ctx context.Context, db *store.DB, rng *rand.Rand, part int) error {
	evs, err := db.Events(ctx, store.EventOptions{IndexEvery: 50})
	if err != nil {
		return err
	}
	for i := range s.appends {
		batch := make([]store.Event, 1+rng.IntN(4))
		for j := range batch {
			batch[j] = drawEvent(rng)
		}
		if _, err := evs.Append(ctx, batch, nil); err != nil {
			return fmt.Errorf("append %d of part %d: %w", i, part, err)
		}
	}
	s.log = s.log[:0]
	for e, err := range evs.Read(ctx, event.All(), nil) {
		if err != nil {
			return err
		}
		s.log = append(s.log, e)
	}
	return nil
}

func (s *events) Verify(ctx context.Context, db *store.DB) (behind bool, err error) {
	evs, err := db.Events(ctx, store.EventOptions{})
	if err != nil {
		return false, err
	}
	head, err := evs.Head(ctx)
	if err != nil {
		return false, err
	}
	if head > uint64(len(s.log)) {
		return false, wrong("head %d of %d events", head, len(s.log))
	}
	all := s.log[:head]
	queries := []store.EventQuery{event.All(), event.Of("A"), event.Of("B", "C"), event.Typed("A", event.NewTag("group", "1"))}
	for i := range 4 {
		queries = append(queries, event.Tagged(event.NewTag("group", fmt.Sprint(i))))
	}
	if len(all) > 0 {
		queries = append(queries, event.Tagged(all[len(all)/3].Tags...), event.Tagged(all[len(all)-1].Tags...))
	}
	for _, q := range queries {
		want := slices.DeleteFunc(slices.Clone(all), func(e store.SequencedEvent) bool { return !q.Matches(&e.Event) })
		for e, err := range evs.Read(ctx, q, nil) {
			if err != nil {
				return false, err
			}
			if len(want) == 0 || want[0].Position != e.Position || !want[0].Time.Equal(e.Time) || !want[0].Equal(&e.Event) {
				return false, wrong("query %+v gives event %d, or it is another", q, e.Position)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			return false, wrong("query %+v does not give event %d", q, want[0].Position)
		}
	}
	return head != uint64(len(s.log)), nil
}
