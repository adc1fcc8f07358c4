package mix_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// The oracle answers every question at every block as the model does, which
// tries each on every entity.
func TestOracleAnswersAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks, m := history(t)
		first, last := blocks[0].Number, blocks[len(blocks)-1].Number
		for _, name := range mix.Names {
			r := reads(t, name, blocks)
			head := last
			s := r.Stream(mix.StreamOptions{
				Seed:   rapid.Uint64().Draw(t, "seed"),
				Head:   func() uint64 { return head },
				Window: rapid.SampledFrom([]uint64{0, 0, 1, 4}).Draw(t, "window"),
				Whole:  rapid.Bool().Draw(t, "whole"),
			})
			for range 12 {
				head = rapid.Uint64Range(first, last).Draw(t, "head")
				op := s.Next()
				if op.Block == store.Head {
					op.Block = rapid.Uint64Range(first, last).Draw(t, "block")
				}
				require.LessOrEqual(t, op.Block, last)
				requireChecked(t, r, m, op)
			}
		}
	})
}

// While blocks come, readers ask about those before and get right answers.
func TestOracleFollowsTheHead(t *testing.T) {
	blocks := mendoza(t, 0.001)
	half := len(blocks) / 2
	for _, name := range mix.Names {
		r := reads(t, name, blocks[:half])
		m := &model.Model{}
		for _, b := range blocks[:half] {
			require.NoError(t, m.Apply(b))
		}
		var ops []mix.Op
		var answers []mix.Answer
		head := blocks[half-1].Number
		s := r.Stream(mix.StreamOptions{Head: func() uint64 { return head }})
		for i := half; i < len(blocks); i++ {
			require.NoError(t, r.Advance(&blocks[i]), "before the store")
			op := s.Next()
			ops, answers = append(ops, op), append(answers, requireChecked(t, r, m, op))
			require.NoError(t, m.Apply(blocks[i]))
			head = blocks[i].Number
			require.Equal(t, head, r.Head())
		}
		for i := range ops {
			require.NoError(t, r.Check(ops[i], answers[i]), "an answer stays right")
		}
	}
}

func TestMixesAreTheSeeds(t *testing.T) {
	type scan struct {
		text  string // of the query, or its shape
		limit int
	}
	want := map[string]map[string]scan{
		mix.A: {
			"status-pending": {`status = "pending"`, 100}, "gpu-above": {`allocatable_gpu > `, 50},
			"creator": {`$creator = 0x`, 100}, "entity": {`$key = 0x`, 0}, "entity-past": {`$key = 0x`, 0}, "payload": {`$key = 0x`, 0},
		},
		mix.B: {
			"entity": {`$key = 0x`, 0}, "votes-of-proposal": {`proposalKey = 0x`, 500}, "votes-of-creator": {`$creator = 0x`, 100},
			"status-active": {`status = "active"`, 100}, "type-proposal": {`type = "proposal"`, 100},
			"entity-past": {`$key = 0x`, 0}, "whole-entity": {"", 0},
		},
		mix.C: {
			"latest-of-type": {`type = "`, 50}, "entity": {`$key = 0x`, 0}, "next-chunk": {`nextBlockId = "chunk_`, 0},
			"block-window": {`$lastModifiedAtBlock >= `, 100}, "payload": {`$key = 0x`, 0}, "creator-latest": {`$creator = 0x`, 20},
		},
	}
	percent := map[string][]int{mix.A: {30, 25, 20, 10, 10, 5}, mix.B: {20, 25, 15, 15, 10, 10, 5}, mix.C: {30, 20, 15, 15, 15, 5}}
	blocks := mendoza(t, 0.002)
	for _, name := range mix.Names {
		r := reads(t, name, blocks)
		require.Equal(t, name, r.Name())
		s := r.Stream(mix.StreamOptions{Seed: 5})
		const n = 20_000
		drawn := map[string]int{}
		for range n {
			op := s.Next()
			drawn[op.Kind]++
			w, known := want[name][op.Kind]
			require.True(t, known, op.Kind)
			require.Equal(t, w.limit, op.Limit)
			require.Equal(t, op.Kind == "entity-past", op.Block != store.Head)
			if op.Get {
				require.Equal(t, "whole-entity", op.Kind)
				continue
			}
			text := op.Expr.String()
			require.Equal(t, w.text, text[:min(len(w.text), len(text))])
			parsed, err := query.Parse(text)
			require.NoError(t, err)
			require.Equal(t, op.Expr, parsed)
			require.NotZero(t, op.Parts)
		}
		require.Len(t, drawn, len(want[name]))
		for i, share := range r.Kinds() {
			require.Equal(t, percent[name][i], share.Percent)
			require.InDelta(t, n*share.Percent/100, drawn[share.Kind], n*0.015, share.Kind)
		}
	}
}

// What is asked for is there: values of visible entities, and windows that are
// not empty.
func TestDrawsFindSomething(t *testing.T) {
	blocks := mendoza(t, 0.002)
	m := &model.Model{}
	for _, b := range blocks {
		require.NoError(t, m.Apply(b))
	}
	for _, name := range mix.Names {
		r := reads(t, name, blocks)
		s := r.Stream(mix.StreamOptions{})
		for range 300 {
			op := s.Next()
			a := requireChecked(t, r, m, op)
			if op.Kind != "block-window" && op.Kind != "gpu-above" { // there may be none
				require.NotZero(t, a.Count, "%s %s", op.Kind, op.Expr)
			}
		}
	}
}

func TestStreamsAreDeterministic(t *testing.T) {
	blocks := mendoza(t, 0.001)
	for _, name := range mix.Names {
		draw := func(o mix.StreamOptions) (ops []mix.Op) {
			s := reads(t, name, blocks).Stream(o)
			for range 200 {
				ops = append(ops, s.Next())
			}
			return ops
		}
		same := draw(mix.StreamOptions{Seed: 1, Worker: 2})
		require.Equal(t, same, draw(mix.StreamOptions{Seed: 1, Worker: 2}))
		require.NotEqual(t, same, draw(mix.StreamOptions{Seed: 1, Worker: 3}))
		require.NotEqual(t, same, draw(mix.StreamOptions{Seed: 2, Worker: 2}))
		one := reads(t, name, blocks)
		a, b := one.Stream(mix.StreamOptions{Worker: 1}), one.Stream(mix.StreamOptions{Worker: 2})
		b.Next()
		require.Equal(t, a.Draw(rand.New(rand.NewPCG(1, 2))), b.Draw(rand.New(rand.NewPCG(1, 2))), "of any worker")
	}
}

func TestChooseAndHeadOnly(t *testing.T) {
	blocks := mendoza(t, 0.001)
	r := reads(t, mix.A, blocks)
	newest := blocks[len(blocks)-1]
	s := r.Stream(mix.StreamOptions{HeadOnly: true, Choose: func(*rand.Rand, int) int { return 0 }})
	entities := 0
	for range 2000 {
		op := s.Next()
		require.Equal(t, uint64(store.Head), op.Block)
		require.NotEqual(t, "entity-past", op.Kind)
		if op.Kind == "entity" {
			entities++
			require.Equal(t, newest.Ops[len(newest.Ops)-1].Key, op.Key)
		}
	}
	require.InDelta(t, 0.4*2000, entities, 100)
}

func TestOracleRefuses(t *testing.T) {
	o := mix.NewOracle()
	require.NoError(t, o.Advance(&store.Block{Number: 5, Ops: []store.Op{{Kind: store.Create, Key: store.Key{1}, BTL: 5}}}))
	require.Error(t, o.Advance(&store.Block{Number: 5}))
	require.ErrorIs(t, o.Advance(&store.Block{Number: 6, Ops: []store.Op{{Kind: store.Create, Key: store.Key{1}}}}), store.ErrExists)
	require.ErrorIs(t, o.Advance(&store.Block{Number: 10, Ops: []store.Op{{Kind: store.Delete, Key: store.Key{1}}}}), store.ErrNotFound)
	require.Equal(t, uint64(5), o.Head())
	require.Equal(t, 1, o.Entities())
	require.Equal(t, 1, o.Versions())
	require.Equal(t, uint64(1), o.Visible(9))
	require.Zero(t, o.Visible(10))
	_, err := mix.New("D", o)
	require.Error(t, err)
	r, err := mix.New(mix.A, o)
	require.NoError(t, err)
	err = r.Check(r.Stream(mix.StreamOptions{}).Next(), mix.Answer{Block: 6})
	require.Error(t, err)
	require.NotErrorIs(t, err, mix.ErrMismatch, "the oracle does not know yet")
}

// An empty store can be asked, too.
func TestEmptyStore(t *testing.T) {
	for _, name := range mix.Names {
		r := reads(t, name, nil)
		s := r.Stream(mix.StreamOptions{})
		for range 100 {
			op := s.Next()
			require.NoError(t, r.Check(op, mix.Answer{}), op.Kind)
		}
	}
}

func TestReadersBesideAWriter(t *testing.T) {
	blocks := mendoza(t, 0.002)
	half := len(blocks) / 2
	r := reads(t, mix.C, blocks[:half])
	head := r.Head()
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			s := r.Stream(mix.StreamOptions{Worker: worker, Head: func() uint64 { return head }})
			for range 2000 {
				op := s.Next()
				// Whatever the answer, the check must not be torn.
				_ = r.Check(op, mix.Answer{Block: head})
			}
		})
	}
	for i := half; i < len(blocks); i++ {
		require.NoError(t, r.Advance(&blocks[i]))
	}
	wg.Wait()
}
