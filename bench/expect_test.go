package bench

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/testdata"
)

func TestExpectationFollowsEveryOperation(t *testing.T) {
	key, gone := entity.Key{1}, entity.Key{2}
	x := NewExpectation(true)
	for _, b := range []entity.Block{
		{Number: 1, Ops: []entity.Op{
			{Kind: entity.Create, Key: key, BTL: 10, StringAttributes: map[string]string{"a": "b"}},
			{Kind: entity.Create, Key: gone, OpIndex: 1, BTL: 2},
		}},
		{Number: 2, Ops: []entity.Op{{Kind: entity.ExtendBTL, Key: key, BTL: 3}}},
		{Number: 3, Ops: []entity.Op{{Kind: entity.ChangeOwner, Key: key, Owner: entity.Address{9}}, {Kind: entity.Expire, Key: gone}}},
	} {
		require.NoError(t, x.Apply(&b))
	}
	require.Equal(t, uint64(1), x.Live())
	require.Equal(t, Counts{Versions: 4, Strings: 3*4 + 3, Numbers: 5 * 4}, x.Counts())
	require.NoError(t, x.Apply(&entity.Block{Number: 5}))
	require.Zero(t, x.Live(), "it expired at block 5")
	again := entity.Block{Number: 6, Ops: []entity.Op{{Kind: entity.Create, Key: key, BTL: entity.MaxBlock}}}
	require.NoError(t, x.Apply(&again))
	require.Equal(t, uint64(1), x.Live())
	require.ErrorIs(t, x.Apply(&again), store.ErrExists)
}

func TestExpectationWithoutWholeEntities(t *testing.T) {
	x := NewExpectation(false)
	create := entity.Block{Number: 1, Ops: []entity.Op{{Kind: entity.Create, BTL: 10}}}
	require.NoError(t, x.Apply(&create))
	err := x.Apply(&entity.Block{Number: 2, Ops: []entity.Op{{Kind: entity.ExtendBTL, BTL: 10}}})
	require.ErrorIs(t, err, store.ErrUnsupported, "it would be wrong")
}

func TestTarDigest(t *testing.T) {
	x := NewExpectation(true)
	n := 0
	for b, err := range feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks)) {
		require.NoError(t, err)
		require.NoError(t, x.Apply(&b))
		n++
	}
	require.Equal(t, testdata.ArkivCount, n)
	require.Equal(t, uint64(testdata.ArkivHead), x.Head().Number)
	require.Equal(t, testdata.ArkivDigest, x.Head().Digest.String())
	require.Equal(t, Counts{Versions: 1219, Strings: 10015, Numbers: 9180}, x.Counts(), "as the README beside the tar says")
}
