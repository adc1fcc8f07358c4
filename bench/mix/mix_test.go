package mix_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
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
			s, from := r.Stream(mix.StreamOptions{Head: func() uint64 { return head }}), random(rapid.Uint64().Draw(t, "seed"))
			for range 12 {
				head = rapid.Uint64Range(first, last).Draw(t, "head")
				op := s(from)
				if op.Block == store.Head {
					op.Block = rapid.Uint64Range(first, last).Draw(t, "block")
				}
				require.LessOrEqual(t, op.Block, last)
				requireChecked(t, r, m, op)
			}
		}
	})
}

// TestOracleOfAnEntityMadeAgain: an entity that is deleted and created again in
// one block is the newest one.
func TestOracleOfAnEntityMadeAgain(t *testing.T) {
	o := mix.NewOracle()
	create := func(key byte, tx uint32) entity.Op {
		return entity.Op{
			Kind: entity.Create, Key: entity.Key{key}, TxIndex: tx, BTL: 50,
			StringAttributes: map[string]string{"type": "t"},
		}
	}
	for _, b := range []entity.Block{
		{Number: 1, Ops: []entity.Op{create(1, 0), create(2, 1)}},
		{Number: 2, Ops: []entity.Op{{Kind: entity.Delete, Key: entity.Key{1}}, create(1, 1)}},
	} {
		require.NoError(t, o.Advance(&b))
	}
	r, err := mix.New(mix.C, o)
	require.NoError(t, err)
	draw, from := r.Stream(mix.StreamOptions{}), random(1)
	op := draw(from)
	for op.Kind != "latest-of-type" {
		op = draw(from)
	}
	require.NoError(t, r.Check(op, mix.Answer{Block: 2, Keys: []entity.Key{{1}, {2}}, Count: 2}))
}

// How many entities there are the oracle knows at the head, past all that ran out.
func TestOracleCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks, m := history(t)
		o := mix.NewOracle()
		for i := range blocks {
			require.NoError(t, o.Advance(&blocks[i]))
			snap, err := m.At(blocks[i].Number)
			require.NoError(t, err)
			n, err := snap.Count(nil)
			require.NoError(t, err)
			require.EqualValues(t, n, o.Visible(), "block %d", blocks[i].Number)
		}
	})
}

func TestMixesAreTheSeeds(t *testing.T) {
	type scan struct {
		percent int
		text    string // of the query, or its shape
		limit   int
	}
	want := map[string]map[string]scan{
		mix.A: {
			"status-pending": {25, `status = "pending"`, 100}, "gpu-above": {20, `allocatable_gpu > `, 50},
			"creator": {10, `$creator = 0x`, 100}, "entity": {30, `$key = 0x`, 0}, "entity-past": {10, `$key = 0x`, 0}, "payload": {5, `$key = 0x`, 0},
		},
		mix.B: {
			"entity": {20, `$key = 0x`, 0}, "votes-of-proposal": {25, `proposalKey = 0x`, 500}, "votes-of-creator": {15, `$creator = 0x`, 100},
			"status-active": {15, `status = "active"`, 100}, "type-proposal": {10, `type = "proposal"`, 100},
			"entity-past": {10, `$key = 0x`, 0}, "whole-entity": {5, "", 0},
		},
		mix.C: {
			"latest-of-type": {30, `type = "`, 50}, "entity": {20, `$key = 0x`, 0}, "next-chunk": {15, `nextBlockId = "chunk_`, 0},
			"block-window": {15, `$lastModifiedAtBlock >= `, 100}, "payload": {15, `$key = 0x`, 0}, "creator-latest": {5, `$creator = 0x`, 20},
		},
		mix.W: {
			"entity": {40, `$key = 0x`, 0}, "attribute-value": {20, "", 100}, "creator": {15, `$creator = 0x`, 100},
			"block-range": {15, `$lastModifiedAtBlock >= `, 100}, "payload": {10, `$key = 0x`, 0},
		},
	}
	blocks := mendoza(t, 0.002)
	for _, name := range mix.Names {
		r := reads(t, name, blocks)
		require.Equal(t, name, r.Name())
		s, from := r.Stream(mix.StreamOptions{}), random(5)
		const n = 20_000
		drawn := map[string]int{}
		for range n {
			op := s(from)
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
		for kind, w := range want[name] {
			require.InDelta(t, n*w.percent/100, drawn[kind], n*0.015, kind)
		}
	}
}

// Questions find entities: values of visible entities, and windows that are not
// empty.
func TestDrawsFindSomething(t *testing.T) {
	blocks := mendoza(t, 0.002)
	m := &model.Model{}
	for _, b := range blocks {
		require.NoError(t, m.Apply(b))
	}
	for _, name := range mix.Names {
		r := reads(t, name, blocks)
		s, from := r.Stream(mix.StreamOptions{}), random(0)
		for range 300 {
			op := s(from)
			a := requireChecked(t, r, m, op)
			if op.Kind != "block-window" && op.Kind != "gpu-above" { // there may be none
				require.NotZero(t, a.Count, "%s %s", op.Kind, op.Expr)
			}
		}
	}
}

// W asks for text and numbers, for frequent values and for rare ones, also of
// an attribute with a sample in the oracle. It answers for later data, too.
func TestEverydayValues(t *testing.T) {
	m := &model.Model{}
	o := mix.NewOracle()
	number := uint64(0)
	write := func(kind entity.Kind, n, id int) {
		number++
		b := entity.Block{Number: number, Ops: []entity.Op{{
			Kind: kind, Key: entity.Key{byte(n), byte(n >> 8), 1}, BTL: entity.MaxBlock, Owner: entity.Address{byte(n % 3)},
			StringAttributes:  map[string]string{"id": fmt.Sprint("id", id), "state": []string{"on", "off", ""}[id%3], "word": strings.Repeat("x", 300)},
			NumericAttributes: map[string]uint64{"id": uint64(id), "half": uint64(id / 2)},
		}}}
		require.NoError(t, o.Advance(&b))
		require.NoError(t, m.Apply(b))
	}
	for n := range 400 {
		write(entity.Create, n, n)
		if n%3 == 0 {
			write(entity.Update, n, n+1000)
		}
	}
	r, err := mix.New(mix.W, o)
	require.NoError(t, err)
	s, from := r.Stream(mix.StreamOptions{Head: func() uint64 { return number }}), random(0)
	names, values, many := map[string]int{}, map[string]bool{}, 0
	for i := range 2000 {
		if i%100 == 0 {
			write(entity.Update, i/10, 2*i+1)
		}
		op := s(from)
		a := requireChecked(t, r, m, op)
		require.NotZero(t, a.Count, "%s %s", op.Kind, op.Expr)
		if op.Kind == "attribute-value" {
			of, ok := op.Expr.(query.Compare)
			require.True(t, ok)
			names[fmt.Sprint(of.Name, of.Value.Kind)]++
			values[op.Expr.String()] = true
			if a.Count > 50 {
				many++
			}
		}
	}
	require.Len(t, names, 4, "%v", names)
	require.Greater(t, len(values), 150)
	require.Greater(t, many, 50)
}

func TestStreamsAreDeterministic(t *testing.T) {
	blocks := mendoza(t, 0.001)
	for _, name := range mix.Names {
		draw := func(seed uint64) (ops []mix.Op) {
			s, from := reads(t, name, blocks).Stream(mix.StreamOptions{}), random(seed)
			for range 200 {
				ops = append(ops, s(from))
			}
			return ops
		}
		same := draw(1)
		require.Equal(t, same, draw(1))
		require.NotEqual(t, same, draw(2))
		one := reads(t, name, blocks)
		a, b := one.Stream(mix.StreamOptions{}), one.Stream(mix.StreamOptions{})
		b(random(1))
		require.Equal(t, a(random(2)), b(random(2)), "of any worker")
	}
}

func TestHeadOnly(t *testing.T) {
	s, from := reads(t, mix.A, mendoza(t, 0.001)).Stream(mix.StreamOptions{HeadOnly: true}), random(0)
	entities := 0
	for range 2000 {
		op := s(from)
		require.Equal(t, uint64(store.Head), op.Block)
		require.NotEqual(t, "entity-past", op.Kind)
		if op.Kind == "entity" {
			entities++
		}
	}
	require.InDelta(t, 0.4*2000, entities, 100)
}

func TestOracleRefuses(t *testing.T) {
	o := mix.NewOracle()
	require.NoError(t, o.Advance(&entity.Block{Number: 5, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{1}, BTL: 5}}}))
	require.Error(t, o.Advance(&entity.Block{Number: 5}))
	require.ErrorIs(t, o.Advance(&entity.Block{Number: 6, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{1}}}}), store.ErrExists)
	require.ErrorIs(t, o.Advance(&entity.Block{Number: 10, Ops: []entity.Op{{Kind: entity.Delete, Key: entity.Key{1}}}}), store.ErrNotFound)
	require.Equal(t, uint64(5), o.Head())
	_, err := mix.New("D", o)
	require.Error(t, err)
	r, err := mix.New(mix.A, o)
	require.NoError(t, err)
	err = r.Check(r.Stream(mix.StreamOptions{})(random(0)), mix.Answer{Block: 6})
	require.Error(t, err)
	require.NotErrorIs(t, err, mix.ErrMismatch, "the oracle does not know yet")
}

// An empty store can be asked, too.
func TestEmptyStore(t *testing.T) {
	for _, name := range mix.Names {
		r := reads(t, name, nil)
		s, from := r.Stream(mix.StreamOptions{}), random(0)
		for range 100 {
			op := s(from)
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
			s, from := r.Stream(mix.StreamOptions{Head: func() uint64 { return head }}), random(uint64(worker))
			for range 2000 {
				op := s(from)
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
