package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// foundCases are histories on which RunDifferential once found a store wrong.
var foundCases = map[string]func(t *testing.T, h Harness, layout string){
	"rewind to a block whose head was pruned": foundRewind,
	"history of an empty block 0":             foundEmptyHistory,
	"NUL in a pattern":                        foundNULPattern,
}

// openFound opens a new store beside a model that matches it.
func openFound(t *testing.T, h Harness, layout string) (*store.Entities, *model.Model) {
	t.Helper()
	ents := entitiesOf(t, h.open(t, h.quickURL(t), nil), store.EntityOptions{Layout: layout})
	return ents, &model.Model{HeadOnly: !ents.Temporal()}
}

func applyBoth(t *testing.T, ents *store.Entities, m *model.Model, b store.Block) {
	t.Helper()
	require.NoError(t, m.Apply(b))
	_, err := ents.Apply(context.Background(), b)
	require.NoError(t, err)
}

// foundRewind: blocks 1 and 10, pruned at 5. Rewinding to 7 would leave block 1
// as the head, which can no longer be read.
func foundRewind(t *testing.T, h Harness, layout string) {
	ctx := context.Background()
	ents, m := openFound(t, h, layout)
	create := store.Op{Kind: store.Create, Key: someKeys[1], BTL: 3}
	applyBoth(t, ents, m, store.Block{Number: 1, Ops: []store.Op{create}})
	applyBoth(t, ents, m, store.Block{Number: 10, Ops: []store.Op{create}})
	require.NoError(t, m.Prune(5))
	require.NoError(t, ents.Prune(ctx, 5))
	for _, to := range []uint64{7, 5, 4, 10, 11} {
		requireSameError(t, m.Rewind(to), ents.Rewind(ctx, to))
		head := headOf(t, ents)
		require.Equal(t, m.Head(), head)
		s, err := ents.At(ctx, store.Head)
		require.NoError(t, err, "the head can always be read")
		require.NoError(t, s.Close())
	}
}

// foundEmptyHistory: an empty block 0 is a block, in the copy as well.
func foundEmptyHistory(t *testing.T, h Harness, layout string) {
	ctx := context.Background()
	ents, m := openFound(t, h, layout)
	applyBoth(t, ents, m, store.Block{Number: 0})
	other, _ := openFound(t, h, layout)
	_, err := other.Import(ctx, ents.History(ctx), store.LoadOptions{})
	require.NoError(t, err)
	head := headOf(t, other)
	require.Equal(t, m.Head(), head)
}

// foundNULPattern: a pattern is not cut at U+0000.
func foundNULPattern(t *testing.T, h Harness, layout string) {
	ctx := context.Background()
	ents, m := openFound(t, h, layout)
	applyBoth(t, ents, m, store.Block{Number: 1, Ops: []store.Op{{
		Kind: store.Create, Key: someKeys[1], BTL: 3, StringAttributes: map[string]string{"a": "b"},
	}}})
	s, err := ents.At(ctx, store.Head)
	require.NoError(t, err)
	defer s.Close()
	want, err := m.At(store.Head)
	require.NoError(t, err)
	for _, name := range []string{"a", entity.AttrOwner} {
		for _, negated := range []bool{false, true} {
			expr := query.Glob{Name: name, Pattern: "*\x00*", Negated: negated}
			found, err := collect(s.Query(ctx, expr, nil))
			if err != nil {
				require.ErrorIs(t, err, store.ErrUnsupported, "an engine without NUL may refuse the pattern")
				continue
			}
			wantFound, err := want.Query(expr, nil, 0, nil)
			require.NoError(t, err)
			requireEntities(t, wantFound, found)
		}
	}
}
