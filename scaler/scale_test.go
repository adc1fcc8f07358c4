package scaler

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/entity"
)

func mendozaSource(scale float64) Source {
	return func() iter.Seq2[entity.Block, error] { return Stream(Mendoza(), Options{Scale: scale, Seed: 1}) }
}

func TestScaleByOneIsIdentity(t *testing.T) {
	src := mendozaSource(0.001)
	require.Equal(t, collect(t, src()), collect(t, Scale(src, ScaleOptions{Factor: 1})))
}

// TestScaleCounts checks numbers, block ranges, uniqueness and validity.
func TestScaleCounts(t *testing.T) {
	const scale = 0.0021
	src := mendozaSource(scale)
	want := count(collect(t, src()))
	kept := len(fold(t, src()).entities)
	for _, factor := range []uint64{2, 5} {
		blocks := collect(t, Scale(src, ScaleOptions{Factor: factor}))
		require.Equal(t, int(factor*want.Blocks), len(blocks))
		require.Equal(t, want.FirstBlock+factor*want.Blocks-1, blocks[len(blocks)-1].Number)
		for i := range blocks {
			requireCreations(t, &blocks[i])
		}
		got := count(blocks)
		require.Equal(t, factor*want.Rows(), got.Rows())
		require.Equal(t, factor*want.PayloadRowBytes, got.PayloadRowBytes)
		for kind, n := range want.ops {
			require.Equal(t, factor*n, got.ops[kind], entity.Kind(kind))
		}
		require.Equal(t, int(factor)*kept, len(fold(t, source(blocks...)()).entities))
	}
}

// requireCreations checks that every creation has a different sequence.
func requireCreations(t require.TestingT, b *entity.Block) {
	seen := map[uint64]bool{}
	for i := range b.Ops {
		if op := &b.Ops[i]; op.Kind == entity.Create {
			at := entity.MakeSequence(b.Number, op.TxIndex, op.OpIndex)
			require.False(t, seen[at], "block %d, operation %d", b.Number, i)
			seen[at] = true
		}
	}
}

// TestScaleReferences checks that the copies refer to each other as the originals do.
func TestScaleReferences(t *testing.T) {
	stream := Scale(mendozaSource(0.002), ScaleOptions{Factor: 3})
	nodes, keys := created(t, stream, "node_id")
	chunks, _ := created(t, stream, "blockId")
	require.Equal(t, 3*1600, len(keys))
	for b, err := range stream {
		require.NoError(t, err)
		for _, op := range b.Ops {
			a := op.StringAttributes
			if node, ok := a["assigned_node"]; ok {
				require.True(t, nodes[node], node)
			}
			if next := a["nextBlockId"]; next != "" {
				require.True(t, chunks[next], next)
				require.Equal(t, suffix(a["blockId"]), suffix(next), "both of one copy")
			}
			if key, ok := a["proposalKey"]; ok {
				require.True(t, keys[key], key)
			}
		}
	}
}

func suffix(id string) string {
	_, s, _ := strings.Cut(id, "#")
	return s
}

func TestScaleMapsAttributes(t *testing.T) {
	other := entity.Key{9}
	op := entity.Op{Kind: entity.Create, Key: entity.Key{1}, Owner: entity.Address{5}, BTL: 10, Content: []byte("x"),
		StringAttributes: map[string]string{
			"parent": other.String(), "node_id": "a", "nextBlockId": "", "plain": "a", "almost": other.String()[:65] + "g",
		},
		NumericAttributes: map[string]uint64{"n": 1}}
	first := newMapper(0, 1)
	copied := first.op(&op, first.key(op.Key))
	require.Equal(t, map[string]string{
		"parent": first.key(other).String(), "node_id": "a#1", "nextBlockId": "", "plain": "a", "almost": op.StringAttributes["almost"],
	}, copied.StringAttributes)
	require.Equal(t, first.key(op.Key), copied.Key)
	require.Equal(t, op.Owner, copied.Owner)
	require.Equal(t, op.NumericAttributes, copied.NumericAttributes)
	require.Equal(t, "a", op.StringAttributes["node_id"], "the source is not changed")

	second := newMapper(0xab, 1)
	require.Equal(t, "a#ab.1", second.attributes(op.StringAttributes)["node_id"])
	require.NotEqual(t, copied.Key, second.key(op.Key))
}

// TestScaleAgain: a scaled source can be scaled again with another seed, and
// collides with the same seed.
func TestScaleAgain(t *testing.T) {
	src := mendozaSource(0.0002)
	double := func() iter.Seq2[entity.Block, error] { return Scale(src, ScaleOptions{Factor: 2}) }
	fold(t, Scale(double, ScaleOptions{Factor: 3, Seed: 1}))
	l, err := newLedger(), error(nil)
	for b, streamErr := range Scale(double, ScaleOptions{Factor: 2}) {
		require.NoError(t, streamErr)
		if err = l.apply(&b); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, entity.ErrExists)
}

// TestScaleTransactions: copies in the original's blocks have transactions
// after its own.
func TestScaleTransactions(t *testing.T) {
	block := func(tx ...uint32) entity.Block {
		b := entity.Block{Number: 5}
		for i, x := range tx {
			b.Ops = append(b.Ops, entity.Op{Kind: entity.Create, Key: entity.Key{byte(i)}, TxIndex: x})
		}
		return b
	}
	var tx transactions
	b := block(7, 2, 7, 60000)
	tx.read(&b)
	var index []uint64
	for c := range uint64(2) {
		for i := range b.Ops {
			index = append(index, tx.index(b.Ops[i].TxIndex, c+1))
		}
	}
	require.Equal(t, []uint64{60002, 60001, 60002, 60003, 60005, 60004, 60005, 60006}, index)
	require.ErrorContains(t, lastError(Scale(source(block(65535)), ScaleOptions{Factor: 9})), "block 5, tx 65535, op 0")
}

func lastError(blocks iter.Seq2[entity.Block, error]) (err error) {
	for _, err = range blocks {
	}
	return err
}

func TestScaleSaturates(t *testing.T) {
	op := entity.Op{Kind: entity.Create, BTL: entity.MaxBlock - 10}
	late := source(entity.Block{Number: entity.MaxBlockNumber - 2, Ops: []entity.Op{op}}, entity.Block{Number: entity.MaxBlockNumber})
	require.ErrorContains(t, lastError(Scale(late, ScaleOptions{Factor: 2})), "copy 1 of block 4294967293 passes the highest block number 4294967295")
	for _, e := range fold(t, Scale(source(entity.Block{Number: 10, Ops: []entity.Op{op}}), ScaleOptions{Factor: 5})).entities {
		require.Equal(t, uint64(entity.MaxBlock), e.Expiration, "for ever stays for ever")
	}
}

// TestContinue: what comes after a source and its copies are copies that are whole, each in an epoch.
func TestContinue(t *testing.T) {
	src := mendozaSource(0.0002)
	want := count(collect(t, src()))
	o := ScaleOptions{Factor: 2}
	blocks := collect(t, Scale(src, o))
	for b, err := range Continue(src, o, want.FirstBlock, want.LastBlock) {
		require.NoError(t, err)
		if blocks = append(blocks, b); len(blocks) == 4*int(want.Blocks) {
			break
		}
	}
	got := count(blocks)
	require.Equal(t, 4*want.Blocks, got.LastBlock)
	require.Equal(t, 4*want.Rows(), got.Rows())
	fold(t, source(blocks...)())
}

func TestScaleErrors(t *testing.T) {
	src := source(entity.Block{Number: 1}, entity.Block{Number: 4})
	broken := errors.New("broken")
	failing := func() iter.Seq2[entity.Block, error] {
		return func(yield func(entity.Block, error) bool) { yield(entity.Block{}, broken) }
	}
	require.ErrorContains(t, lastError(Scale(src, ScaleOptions{})), "scale by 0: want a factor from 1")
	require.ErrorIs(t, lastError(Scale(failing, ScaleOptions{Factor: 2})), broken)
	require.Empty(t, collect(t, Scale(source(), ScaleOptions{Factor: 4})))
	for _, err := range Scale(src, ScaleOptions{Factor: 2}) {
		require.NoError(t, err)
		break // a consumer may stop, which is no error
	}
}

func TestScaleProperty(t *testing.T) {
	p := tiny()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		src := func() iter.Seq2[entity.Block, error] { return Stream(p, Options{Scale: 0.5, Seed: seed}) }
		o := ScaleOptions{
			Factor: rapid.Uint64Range(1, 5).Draw(t, "factor"), Seed: rapid.Uint64().Draw(t, "salt"),
		}
		once, many := fold(t, src()), fold(t, Scale(src, o))
		require.Equal(t, int(o.Factor)*len(once.entities), len(many.entities))
		for key, e := range once.entities {
			require.Equal(t, e, many.entities[key], "the source itself is in the result")
		}
	})
}
