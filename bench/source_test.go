package bench

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

func gather(t require.TestingT, blocks iter.Seq2[entity.Block, error]) (all []entity.Block) {
	for b, err := range blocks {
		require.NoError(t, err)
		all = append(all, b)
	}
	return all
}

func replay(blocks []entity.Block) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// shown is what a reader sees of an entity, apart from the blocks in which it
// was created and changed. The order is that of creation.
type shown struct {
	Key            entity.Key
	Creator, Owner entity.Address
	ContentType    string
	Content        string
	Status         string
	Expiration     uint64
}

func show(t require.TestingT, m *model.Model, block uint64) []shown {
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

func fold(t require.TestingT, blocks []entity.Block) *model.Model {
	m := &model.Model{}
	for _, b := range blocks {
		require.NoError(t, m.Apply(b))
	}
	return m
}

// requireMerged checks that a store shows the same after each merged block.
func requireMerged(t require.TestingT, blocks, merged []entity.Block) {
	was, is := fold(t, blocks), fold(t, merged)
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
			if op.Kind == entity.Expire && ended[op.Key] || !fits(blocks, trial) {
				continue
			}
			b, ended[op.Key] = trial, op.Kind == entity.Delete || op.Kind == entity.Expire
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// fits tells whether a block may follow others.
func fits(blocks []entity.Block, b entity.Block) bool {
	m := &model.Model{}
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
		requireMerged(t, blocks, gather(t, Merged(replay(blocks), rapid.IntRange(0, 12).Draw(t, "merge"))))
	})
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

func TestMendozaSourceParts(t *testing.T) {
	for _, perBlock := range []int{0, 60} {
		s, err := MendozaSource(0.002, 7, perBlock, 0.7)
		require.NoError(t, err)
		first, rest := gather(t, s.Blocks()), gather(t, until(s.Rest(), s.follow))
		require.Equal(t, first, gather(t, s.Blocks()))
		further := some(t, s.Rest(), 2*len(rest))
		require.Equal(t, rest, further[:len(rest)], "the same each time, and it goes on")
		fold(t, slices.Concat(first, further)) // each block fits those before it
		all := slices.Concat(first, rest)
		whole := gather(t, scaler.Stream(scaler.Mendoza(), scaler.Options{Scale: 0.002, Seed: 7}))
		if perBlock == 0 {
			require.Equal(t, whole, all)
			continue
		}
		require.LessOrEqual(t, first[len(first)-1].Number, uint64(0.7*float64(len(whole))))
		require.Greater(t, rest[0].Number, uint64(0.7*float64(len(whole))))
		was, is := fold(t, slices.DeleteFunc(whole, func(b entity.Block) bool { return len(b.Ops) == 0 })), fold(t, all)
		for _, b := range []entity.Block{first[len(first)/2], first[len(first)-1], rest[0], rest[len(rest)-1]} {
			require.Equal(t, show(t, was, b.Number), show(t, is, b.Number))
		}
	}
	s, err := MendozaSource(0.001, 7, 60, 1)
	require.NoError(t, err)
	fold(t, slices.Concat(gather(t, s.Blocks()), some(t, s.Rest(), 50)))
	for _, share := range []float64{0, -1, 1.1} {
		_, err := MendozaSource(0.001, 0, 0, share)
		require.ErrorIs(t, err, store.ErrInvalid)
	}
	_, err = MendozaSource(101, 0, 0, 1)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// Payloads apart, the profile with the smallest ones is the same.
func TestBareProfile(t *testing.T) {
	o := scaler.Options{Scale: 0.002, Seed: 5}
	bares := gather(t, scaler.Stream(bare(scaler.Mendoza()), o))
	for i, b := range gather(t, scaler.Stream(scaler.Mendoza(), o)) {
		for j := range b.Ops {
			b.Ops[j].Content, bares[i].Ops[j].Content = nil, nil
		}
		require.Equal(t, b, bares[i])
	}
}

func TestDataCentreSource(t *testing.T) {
	cfg := dcseed.Config{NodesPerDC: 20, Payload: 64, NodeUpdates: 3, WorkloadUpdates: 5, PerBlock: 30}
	m, err := dcseed.New(cfg)
	require.NoError(t, err)
	s := DataCentreSource(m)
	blocks := gather(t, s.Blocks())
	require.Equal(t, m.FirstLoadBlock()-1, blocks[len(blocks)-1].Number)
	require.Equal(t, m.FirstLoadBlock(), some(t, s.Rest(), 1)[0].Number)
}
