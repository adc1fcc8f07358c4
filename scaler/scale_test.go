package scaler

import (
	"errors"
	"fmt"
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
	for _, m := range []Method{Hybrid, Duplicate, Temporal} {
		require.Equal(t, fingerprint(t, src()), fingerprint(t, Scale(src, ScaleOptions{Method: m, Factor: 1})))
	}
}

// TestScaleCounts checks numbers, block ranges, uniqueness and validity.
func TestScaleCounts(t *testing.T) {
	const scale = 0.0021
	src := mendozaSource(scale)
	plan, err := Plan(Mendoza(), Options{Scale: scale, Seed: 1})
	require.NoError(t, err)
	kept := len(fold(t, src()).entities)
	for _, m := range []Method{Hybrid, Duplicate, Temporal} {
		for _, factor := range []uint64{2, 5} {
			t.Run(fmt.Sprintf("method=%s/factor=%d", m, factor), func(t *testing.T) {
				blocks := collect(t, Scale(src, ScaleOptions{Method: m, Factor: factor}))
				epochs := factor
				if m == Duplicate {
					epochs = 1
				}
				require.Equal(t, int(epochs*plan.Blocks), len(blocks))
				require.Equal(t, plan.FirstBlock+epochs*plan.Blocks-1, blocks[len(blocks)-1].Number)
				for i := range blocks {
					requireCreations(t, &blocks[i])
				}
				got := totals(blocks)
				require.Equal(t, factor*plan.Rows(), got.Rows())
				require.Equal(t, factor*plan.PayloadRowBytes, got.PayloadRowBytes)
				for kind, n := range plan.Ops {
					require.Equal(t, factor*n, got.Ops[kind], entity.Kind(kind))
				}
				require.Equal(t, int(factor)*kept, len(fold(t, source(blocks...)()).entities))
			})
		}
	}
}

// requireCreations checks that every creation has a sequence of its own.
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

// TestScaleReferences checks that the copies refer to each other as the
// originals do.
func TestScaleReferences(t *testing.T) {
	src := mendozaSource(0.002)
	for _, m := range []Method{Hybrid, Duplicate, Temporal} {
		stream := Scale(src, ScaleOptions{Method: m, Factor: 3})
		nodes, keys := created(t, stream, "node_id")
		chunks, _ := created(t, stream, "blockId")
		require.Equal(t, 3*1600, len(keys))
		votes := map[string]int{}
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
					votes[key]++
				}
			}
		}
		original := map[int]int{} // how many proposals have so many votes
		for b, err := range src() {
			require.NoError(t, err)
			for _, op := range b.Ops {
				if key, ok := op.StringAttributes["proposalKey"]; ok {
					require.NotZero(t, votes[key])
					original[votes[key]] = 3
				}
			}
		}
		for _, n := range votes {
			require.NotZero(t, original[n], "a copy of a proposal has as many votes")
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
	src := source(entity.Block{Number: 1, Ops: []entity.Op{op}})
	o := ScaleOptions{Method: Duplicate, Factor: 2}
	copied := collect(t, Scale(src, o))[0].Ops[1]
	first := newMapper(0, 1)
	require.Equal(t, map[string]string{
		"parent": first.key(other).String(), "node_id": "a#1", "nextBlockId": "", "plain": "a", "almost": op.StringAttributes["almost"],
	}, copied.StringAttributes)
	require.Equal(t, first.key(op.Key), copied.Key)
	require.Equal(t, op.Owner, copied.Owner)
	require.Equal(t, op.NumericAttributes, copied.NumericAttributes)
	require.Equal(t, "a", op.StringAttributes["node_id"], "the source is not changed")

	o.Seed = 0xab
	again := collect(t, Scale(src, o))[0].Ops[1]
	require.Equal(t, "a#ab.1", again.StringAttributes["node_id"])
	require.NotEqual(t, copied.Key, again.Key)
}

// TestScaleAgain: what was scaled can be scaled again with another seed, and
// collides with the same.
func TestScaleAgain(t *testing.T) {
	src := mendozaSource(0.0002)
	double := func() iter.Seq2[entity.Block, error] { return Scale(src, ScaleOptions{Factor: 2}) }
	fold(t, Scale(double, ScaleOptions{Factor: 3, Seed: 1}))
	l, err := newLedger(), error(nil)
	for b, streamErr := range Scale(double, ScaleOptions{Factor: 2, Method: Duplicate}) {
		require.NoError(t, streamErr)
		if err = l.apply(&b); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, entity.ErrExists)
}

func TestScaleTransactions(t *testing.T) {
	block := func(tx ...uint32) entity.Block {
		b := entity.Block{Number: 5}
		for i, x := range tx {
			b.Ops = append(b.Ops, entity.Op{Kind: entity.Create, Key: entity.Key{byte(i)}, TxIndex: x})
		}
		return b
	}
	got := collect(t, Scale(source(block(7, 2, 7, 60000)), ScaleOptions{Method: Duplicate, Factor: 3}))[0]
	var index []uint32
	for _, op := range got.Ops {
		index = append(index, op.TxIndex)
	}
	require.Equal(t, []uint32{7, 2, 7, 60000, 60002, 60001, 60002, 60003, 60005, 60004, 60005, 60006}, index)

	err := lastError(Scale(source(block(65535)), ScaleOptions{Method: Duplicate, Factor: 2}))
	require.ErrorContains(t, err, "block 5, tx 65535, op 0")
	require.ErrorContains(t, err, "use a smaller factor or temporal copies")
}

func lastError(blocks iter.Seq2[entity.Block, error]) (err error) {
	for _, err = range blocks {
	}
	return err
}

func TestScaleSaturates(t *testing.T) {
	op := entity.Op{Kind: entity.Create, BTL: entity.MaxBlock - 10}
	late := source(entity.Block{Number: entity.MaxBlockNumber - 2, Ops: []entity.Op{op}}, entity.Block{Number: entity.MaxBlockNumber})
	for _, m := range []Method{Hybrid, Temporal} {
		err := lastError(Scale(late, ScaleOptions{Method: m, Factor: 2}))
		require.ErrorContains(t, err, "copy 1 of block 4294967293 passes the highest block number 4294967295")
	}
	require.NoError(t, lastError(Scale(late, ScaleOptions{Method: Duplicate, Factor: 2})))

	early := source(entity.Block{Number: 10, Ops: []entity.Op{op}})
	blocks := collect(t, Scale(early, ScaleOptions{Method: Temporal, Factor: 2}))
	require.Equal(t, uint64(11), blocks[1].Number)
	for _, e := range fold(t, source(blocks...)()).entities {
		require.Equal(t, uint64(entity.MaxBlock), e.Expiration, "for ever stays for ever")
	}
}

func TestScaleErrors(t *testing.T) {
	src := source(entity.Block{Number: 1}, entity.Block{Number: 4})
	broken := errors.New("broken")
	failing := func() iter.Seq2[entity.Block, error] {
		return func(yield func(entity.Block, error) bool) { yield(entity.Block{}, broken) }
	}
	require.ErrorContains(t, lastError(Scale(src, ScaleOptions{})), "scale by 0: want a factor from 1")
	require.ErrorContains(t, lastError(Scale(src, ScaleOptions{Factor: 2, Method: 9})), "unknown method(9)")
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
			Method: Method(rapid.IntRange(0, 2).Draw(t, "method")), Factor: rapid.Uint64Range(1, 5).Draw(t, "factor"),
			Seed: rapid.Uint64().Draw(t, "salt"),
		}
		once, many := fold(t, src()), fold(t, Scale(src, o))
		require.Equal(t, int(o.Factor)*len(once.entities), len(many.entities))
		for key, e := range once.entities {
			require.Equal(t, e, many.entities[key], "the source itself is in the result")
		}
	})
}

func TestParseMethod(t *testing.T) {
	for _, m := range []Method{Hybrid, Duplicate, Temporal} {
		got, err := ParseMethod(m.String())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	_, err := ParseMethod("triplicate")
	require.ErrorContains(t, err, "want hybrid, duplicate or temporal")
}
