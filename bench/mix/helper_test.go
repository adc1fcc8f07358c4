package mix_test

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

// ask carries out an operation on the model, which tries the query on every entity.
func ask(t require.TestingT, m *model.Model, op mix.Op) mix.Answer {
	snap, err := m.At(op.Block)
	require.NoError(t, err)
	a := mix.Answer{Block: snap.Block()}
	if op.Get {
		e, err := snap.Get(op.Key)
		if err != nil {
			require.ErrorIs(t, err, store.ErrNotFound)
			return a
		}
		a.Entity, a.Count = e, 1
		return a
	}
	found, err := snap.Query(op.Expr, op.Order, op.Limit, nil)
	require.NoError(t, err)
	a.Count = uint64(len(found))
	for _, e := range found {
		a.Keys = append(a.Keys, e.Key)
		if op.Key != (entity.Key{}) {
			a.Entity = e
		}
	}
	return a
}

// spoil yields answers that differ from the right one in one thing.
func spoil(op mix.Op, a mix.Answer) iter.Seq2[string, mix.Answer] {
	return func(yield func(string, mix.Answer) bool) {
		if op.Key != (entity.Key{}) {
			spoilEntity(op, a, yield)
			return
		}
		keys := a.Keys
		change := func(name string, f func(keys []entity.Key) []entity.Key) bool {
			a.Keys = f(slices.Clone(keys))
			a.Count = uint64(len(a.Keys))
			return yield(name, a)
		}
		if !change("one more", func(k []entity.Key) []entity.Key { return append(k, entity.Key{200}) }) || len(keys) == 0 {
			return
		}
		if !change("one missing", func(k []entity.Key) []entity.Key { return k[:len(k)-1] }) ||
			!change("first missing", func(k []entity.Key) []entity.Key { return k[1:] }) ||
			!change("one wrong", func(k []entity.Key) []entity.Key { k[len(k)/2][31] ^= 1; return k }) || len(keys) == 1 {
			return
		}
		change("another order", func(k []entity.Key) []entity.Key { k[0], k[1] = k[1], k[0]; return k })
	}
}

func spoilEntity(op mix.Op, a mix.Answer, yield func(string, mix.Answer) bool) {
	if a.Entity == nil {
		a.Entity, a.Count = &entity.Entity{Key: op.Key}, 1
		yield("found", a)
		return
	}
	right := a.Entity
	a.Entity, a.Count = nil, 0
	if !yield("lost", a) {
		return
	}
	parts := op.Parts
	if op.Get {
		parts = store.Metadata | store.Attributes | store.Content
	}
	for _, c := range []struct {
		name   string
		part   store.Parts
		change func(e *entity.Entity)
	}{
		{"key", store.Metadata | store.Attributes | store.Content, func(e *entity.Entity) { e.Key[0]++ }},
		{"owner", store.Metadata, func(e *entity.Entity) { e.Owner[0]++ }},
		{"creator", store.Metadata, func(e *entity.Entity) { e.Creator[0]++ }},
		{"sequence", store.Metadata, func(e *entity.Entity) { e.Sequence++ }},
		{"last change", store.Metadata, func(e *entity.Entity) { e.LastModifiedAtBlock++ }},
		{"expiration", store.Metadata, func(e *entity.Entity) { e.Expiration++ }},
		{"content type", store.Attributes, func(e *entity.Entity) { e.ContentType += "x" }},
		{"string", store.Attributes, func(e *entity.Entity) { e.StringAttributes = map[string]string{"type": "x"} }},
		{"number", store.Attributes, func(e *entity.Entity) { e.NumericAttributes = map[string]uint64{"x": 1, "y": 2} }},
		{"content", store.Content, func(e *entity.Entity) { e.Content = append(slices.Clone(e.Content), 1) }},
	} {
		if parts&c.part == 0 {
			continue
		}
		wrong := *right
		c.change(&wrong)
		a.Entity, a.Count = &wrong, 1
		if !yield(c.name, a) {
			return
		}
	}
}

// requireChecked asks the model and checks the answer, and wrong ones.
func requireChecked(t require.TestingT, reads mix.Reads, m *model.Model, op mix.Op) mix.Answer {
	a := ask(t, m, op)
	require.NoError(t, reads.Check(op, a), "%+v", op)
	for name, wrong := range spoil(op, a) {
		require.ErrorIs(t, reads.Check(op, wrong), mix.ErrMismatch, "%s of %+v", name, op)
	}
	return a
}

// history draws a valid history of few keys with the attributes that the mixes ask for.
func history(t *rapid.T) ([]entity.Block, *model.Model) {
	m := &model.Model{}
	var blocks []entity.Block
	number := uint64(0)
	for range rapid.IntRange(1, 30).Draw(t, "blocks") {
		number += rapid.Uint64Range(1, 3).Draw(t, "gap")
		b := entity.Block{Number: number}
		for i := range rapid.IntRange(0, 5).Draw(t, "ops") {
			trial := entity.Block{Number: number, Ops: append(slices.Clone(b.Ops), operation(t, i))}
			if follows(blocks, trial) {
				b = trial
			}
		}
		blocks = append(blocks, b)
		require.NoError(t, m.Apply(b))
	}
	return blocks, m
}

func operation(t *rapid.T, i int) entity.Op {
	text := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	op := entity.Op{
		Kind:    entity.Kind(rapid.IntRange(int(entity.Create), int(entity.Expire)).Draw(t, "kind")),
		TxIndex: uint32(i / 2), OpIndex: uint32(i % 2),
		Key:              entity.Key{byte(rapid.IntRange(1, 9).Draw(t, "key"))},
		BTL:              rapid.SampledFrom([]uint64{0, 1, 2, 5, 9, 30, 1 << 33, entity.MaxBlock}).Draw(t, "btl"),
		Owner:            entity.Address{byte(rapid.IntRange(1, 3).Draw(t, "owner"))},
		ContentType:      text("content type", "a", "b"),
		Content:          []byte(text("content", "", "x", "xy")),
		StringAttributes: map[string]string{}, NumericAttributes: map[string]uint64{},
	}
	for _, values := range [][]string{ // the name, then values
		{"type", "", "vote", "proposal", "node"}, {"status", "", "pending", "active"},
		{"proposalKey", "", "p1", "p2"}, {"nextBlockId", "", "c1", "c2"},
	} {
		name := values[0]
		if v := text(name, values[1:]...); v != "" || name == "nextBlockId" && i == 0 {
			op.StringAttributes[name] = v
		}
	}
	if rapid.Bool().Draw(t, "has GPUs") {
		op.NumericAttributes["allocatable_gpu"] = rapid.SampledFrom([]uint64{0, 1, 2, 4, 5, 1 << 40}).Draw(t, "gpus")
	}
	return op
}

func follows(blocks []entity.Block, b entity.Block) bool {
	m := &model.Model{}
	for _, before := range blocks {
		if m.Apply(before) != nil {
			return false
		}
	}
	return m.Apply(b) == nil
}

// mendoza returns the base profile at a small scale, without empty blocks.
func mendoza(t testing.TB, scale float64) []entity.Block {
	var blocks []entity.Block
	for b, err := range scaler.Stream(scaler.Mendoza(), scaler.Options{Scale: scale, Seed: 1}) {
		require.NoError(t, err)
		if len(b.Ops) > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// random returns what operations are drawn from.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func reads(t require.TestingT, name string, blocks []entity.Block) mix.Reads {
	o := mix.NewOracle()
	for i := range blocks {
		require.NoError(t, o.Advance(&blocks[i]))
	}
	r, err := mix.New(name, o)
	require.NoError(t, err)
	return r
}
