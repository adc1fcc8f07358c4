package scaler

import (
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	reference "github.com/varvedb/varve/store/storetest/model"
)

func replay(blocks []entity.Block) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// shown is a reader's view of an entity, apart from the blocks in which it was
// created and changed. The order is that of creation.
type shown struct {
	Key            entity.Key
	Creator, Owner entity.Address
	ContentType    string
	Content        string
	Status         string
	Expiration     uint64
}

func show(t require.TestingT, m *reference.Model, block uint64) []shown {
	snap, err := m.At(block)
	require.NoError(t, err)
	found, err := snap.Query(nil, nil, 0, nil)
	require.NoError(t, err)
	list := make([]shown, len(found))
	for i, e := range found {
		list[i] = shown{e.Key, e.Creator, e.Owner, e.ContentType, string(e.Content), e.StringAttributes["status"], e.Expiration}
	}
	return list
}

func follow(t require.TestingT, blocks []entity.Block) *reference.Model {
	m := &reference.Model{}
	for _, b := range blocks {
		require.NoError(t, m.Apply(b))
	}
	return m
}

// requireMerged checks that a store shows the same after each merged block.
func requireMerged(t require.TestingT, blocks, merged []entity.Block) {
	was, is := follow(t, blocks), follow(t, merged)
	for _, b := range merged {
		require.NotEmpty(t, b.Ops)
		require.Equal(t, show(t, was, b.Number), show(t, is, b.Number), "block %d", b.Number)
	}
}

// history draws a valid history of few keys, whose entities live for few blocks,
// die, and come again.
func history(t *rapid.T) []entity.Block {
	var blocks []entity.Block
	ended := map[entity.Key]bool{}
	number := uint64(0)
	for range rapid.IntRange(1, 40).Draw(t, "blocks") {
		number += rapid.Uint64Range(1, 3).Draw(t, "gap")
		b := entity.Block{Number: number}
		for i := range rapid.IntRange(0, 4).Draw(t, "ops") {
			op := entity.Op{
				Kind:    entity.Kind(rapid.IntRange(int(entity.Create), int(entity.Expire)).Draw(t, "kind")),
				TxIndex: uint32(i / 2), OpIndex: uint32(i % 2),
				Key:              entity.Key{byte(rapid.IntRange(1, 5).Draw(t, "key"))},
				BTL:              rapid.SampledFrom([]uint64{0, 1, 2, 5, 9, 30, entity.MaxBlock}).Draw(t, "btl"),
				Owner:            entity.Address{byte(rapid.IntRange(1, 3).Draw(t, "owner"))},
				StringAttributes: map[string]string{"status": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "status")},
			}
			trial := entity.Block{Number: b.Number, Ops: append(slices.Clone(b.Ops), op)}
			if op.Kind == entity.Expire && ended[op.Key] || !mayFollow(blocks, trial) {
				continue
			}
			b, ended[op.Key] = trial, op.Kind == entity.Delete || op.Kind == entity.Expire
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// mayFollow reports whether a block may follow others.
func mayFollow(blocks []entity.Block, b entity.Block) bool {
	m := &reference.Model{}
	for _, before := range blocks {
		if m.Apply(before) != nil {
			return false
		}
	}
	return m.Apply(b) == nil
}

func TestMergedShowsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks := history(t)
		requireMerged(t, blocks, collect(t, Merged(replay(blocks), rapid.IntRange(0, 12).Draw(t, "merge"))))
	})
}

// TestMergedGoesOn: a merged block that ended early, because an entity that it
// alters expires, does not cut the blocks after it.
func TestMergedGoesOn(t *testing.T) {
	create := func(number, btl uint64) entity.Block {
		return entity.Block{Number: number, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(number)}, BTL: btl}}}
	}
	blocks := []entity.Block{
		create(1, 5), {Number: 2, Ops: []entity.Op{{Kind: entity.ExtendBTL, Key: entity.Key{1}, BTL: 4}}},
		create(7, 50), create(8, 50), create(9, 50),
	}
	merged := collect(t, Merged(replay(blocks), 3))
	requireMerged(t, blocks, merged)
	require.Len(t, merged, 2)
	require.EqualValues(t, 2, merged[0].Number)
	require.EqualValues(t, 9, merged[1].Number)
}

// TestMergedTransactions: a merged block has as many transactions as a block
// may have, and no more.
func TestMergedTransactions(t *testing.T) {
	create := func(number uint64, key byte, tx uint32) entity.Block {
		return entity.Block{Number: number, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{key}, TxIndex: tx, BTL: 50}}}
	}
	for last, blocks := range []int{1, 2} {
		source := []entity.Block{create(1, 1, math.MaxUint16-1), create(2, 2, uint32(last))}
		merged := collect(t, Merged(replay(source), 3))
		require.Len(t, merged, blocks)
		requireMerged(t, source, merged)
	}
}

func TestMergedStopsAtAnError(t *testing.T) {
	failing := func(yield func(entity.Block, error) bool) {
		if yield(entity.Block{Number: 1, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{1}}}}, nil) {
			yield(entity.Block{}, store.ErrCorrupt)
		}
	}
	var got []error
	for _, err := range Merged(failing, 10) {
		got = append(got, err)
	}
	require.Equal(t, []error{store.ErrCorrupt}, got)
}

func TestSplit(t *testing.T) {
	o := Options{Scale: 0.002, Seed: 7}
	for _, perBlock := range []int{0, 60} {
		s, err := Split(Mendoza(), o, 0.7, perBlock)
		require.NoError(t, err)
		first, rest := collect(t, s.First()), collect(t, Until(s.Rest(), s.LastBlock))
		require.Equal(t, first, collect(t, s.First()))
		further := leading(t, s.Rest(), 2*len(rest))
		require.Equal(t, rest, further[:len(rest)], "the same each time, and it goes on")
		follow(t, slices.Concat(first, further)) // each block fits those before it
		all := slices.Concat(first, rest)
		whole := collect(t, Stream(Mendoza(), o))
		if perBlock == 0 {
			require.Equal(t, whole, all)
			continue
		}
		require.LessOrEqual(t, first[len(first)-1].Number, uint64(0.7*float64(len(whole))))
		require.Greater(t, rest[0].Number, uint64(0.7*float64(len(whole))))
		was, is := follow(t, slices.DeleteFunc(whole, func(b entity.Block) bool { return len(b.Ops) == 0 })), follow(t, all)
		for _, b := range []entity.Block{first[len(first)/2], first[len(first)-1], rest[0], rest[len(rest)-1]} {
			require.Equal(t, show(t, was, b.Number), show(t, is, b.Number))
		}
	}
	s, err := Split(Mendoza(), Options{Scale: 0.001, Seed: 7}, 1, 60)
	require.NoError(t, err)
	follow(t, slices.Concat(collect(t, s.First()), leading(t, s.Rest(), 50)))
}

// leading returns the first n blocks.
func leading(t *testing.T, blocks iter.Seq2[entity.Block, error], n int) (list []entity.Block) {
	for b, err := range blocks {
		require.NoError(t, err)
		if list = append(list, b); len(list) == n {
			break
		}
	}
	return list
}

// Payloads apart, the profile with the smallest ones is the same.
func TestBareProfile(t *testing.T) {
	o := Options{Scale: 0.002, Seed: 5}
	bares := collect(t, Stream(minimalPayloads(Mendoza()), o))
	for i, b := range collect(t, Stream(Mendoza(), o)) {
		for j := range b.Ops {
			b.Ops[j].Content, bares[i].Ops[j].Content = nil, nil
		}
		require.Equal(t, b, bares[i])
	}
}
