package bench

import (
	"encoding/hex"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

func collect(t testing.TB, blocks iter.Seq2[entity.Block, error]) []entity.Block {
	t.Helper()
	var list []entity.Block
	for b, err := range blocks {
		require.NoError(t, err)
		list = append(list, b)
	}
	return list
}

func digest(t testing.TB, streams ...iter.Seq2[entity.Block, error]) string {
	t.Helper()
	x := NewExpectation(false)
	for _, s := range streams {
		for _, b := range collect(t, s) {
			require.NoError(t, b.Validate())
			require.NoError(t, x.Apply(&b))
		}
	}
	d := x.Head().Digest
	return hex.EncodeToString(d[:8])
}

// A change of these digests is a change of every data set: results before and
// after it do not compare.
func TestGoldenDigests(t *testing.T) {
	gen := GenOptions{Entities: 250, Seed: 1}
	for p, want := range map[Profile]string{
		Minimal: "ecd7ab7dc88df910", Typical: "32fee902241e1f0c", Large: "b1acea9df7d33e62", Typical.WithPayload(256): "bec688af3af59490",
	} {
		require.Equal(t, want, digest(t, Blocks(p, gen)), p.Name)
	}
	updates := scaler.Until(Updates(Typical, gen, 2), 3+3)
	require.Equal(t, "a2d59bdf75d0ea2c", digest(t, Blocks(Typical, gen), updates))
}

func TestBlocksAreShapedByTheProfile(t *testing.T) {
	for _, p := range []Profile{Minimal, Typical, Large, Minimal.WithPayload(256), Typical.WithPayload(3)} {
		blocks := collect(t, Blocks(p, GenOptions{Entities: 25, PerBlock: 10, Start: 7}))
		require.Len(t, blocks, 3)
		rows := NewExpectation(false)
		for i, b := range blocks {
			require.Equal(t, uint64(7+i), b.Number)
			require.NoError(t, rows.Apply(&b))
			for _, op := range b.Ops {
				require.Equal(t, entity.Create, op.Kind)
				require.Len(t, op.StringAttributes, p.Strings)
				require.Len(t, op.NumericAttributes, p.Numbers)
				require.Len(t, op.Content, p.Payload)
			}
		}
		require.Len(t, blocks[2].Ops, 5)
		require.Equal(t, uint64(25*p.Rows()), rows.Counts().Rows())
	}
}

func TestPayloadSizeLeavesTheRestAsItIs(t *testing.T) {
	gen := GenOptions{Entities: 30, Seed: 3}
	whole, small := collect(t, Blocks(Typical, gen)), collect(t, Blocks(Typical.WithPayload(0), gen))
	for i := range whole {
		for j := range whole[i].Ops {
			whole[i].Ops[j].Content = []byte{}
		}
	}
	require.Empty(t, cmp.Diff(whole, small))
}

// A stream that goes on where another ended is the rest of one long stream.
func TestStreamsContinue(t *testing.T) {
	tiny := Minimal.WithPayload(9)
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.IntRange(1, 4).Draw(t, "perBlock")
		first := GenOptions{
			Entities: per * rapid.IntRange(0, 3).Draw(t, "blocks"), PerBlock: per,
			Seed: rapid.Uint64().Draw(t, "seed"), Start: rapid.Uint64Range(0, 9).Draw(t, "start"),
		}
		second := first.Next(rapid.IntRange(0, 9).Draw(t, "more"))
		all := first
		all.Entities += second.Entities
		var parts, whole []entity.Block
		for _, s := range []iter.Seq2[entity.Block, error]{Blocks(tiny, first), Blocks(tiny, second)} {
			for b, err := range s {
				require.NoError(t, err)
				parts = append(parts, b)
			}
		}
		for b, err := range Blocks(tiny, all) {
			require.NoError(t, err)
			whole = append(whole, b)
		}
		if diff := cmp.Diff(whole, parts); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestUpdatesFitTheirStream(t *testing.T) {
	gen := GenOptions{Entities: 30, PerBlock: 10, Seed: 1, Skip: 5}
	blocks := collect(t, scaler.Until(Updates(Minimal, gen, 9), 3+20))
	x := NewExpectation(false)
	created := collect(t, Blocks(Minimal, gen))
	for _, b := range append(created, blocks...) {
		require.NoError(t, x.Apply(&b))
	}
	require.Equal(t, uint64(30), x.Live())
	require.Equal(t, uint64(30+20*10), x.Counts().Versions)
	require.NotEqual(t, blocks[0].Ops[0].Key, blocks[1].Ops[0].Key, "the order is random")
}

func TestWrongOptions(t *testing.T) {
	for _, err := range Updates(Minimal, GenOptions{}, 1) {
		require.ErrorIs(t, err, store.ErrInvalid, "updates of none")
	}
	last := GenOptions{Entities: Endless, PerBlock: 1, Start: entity.MaxBlockNumber}
	var errs []error
	for _, err := range Blocks(Minimal, last) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 2)
	require.ErrorIs(t, errs[1], store.ErrInvalid)
}
