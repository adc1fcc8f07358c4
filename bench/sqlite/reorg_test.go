package sqlite_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/entity"
)

// reorgSource is a data set of the base profile, some 1,000 entities.
func reorgSource(t *testing.T, layout string) bench.Dataset {
	source, err := bench.MendozaSource(0.002, 1, 20, 0.6)
	require.NoError(t, err)
	return bench.Dataset{Engine: suite.Engine, Layout: layout, Source: source}
}

// TestReorg: the entities are drawn from all of the store, other ones each time, and
// the rows of each are deleted and inserted with the same primary keys.
func TestReorg(t *testing.T) {
	for _, layout := range []string{"arkiv", "arkiv-pruned", "compact", "simple"} {
		t.Run(layout, func(t *testing.T) {
			d := reorgSource(t, layout)
			cp := openSmall(t, d)
			const rounds = 30
			var touched []entity.Key
			var last *entity.Block
			reorg, err := bench.NewReorg(cp, 1)
			require.NoError(t, err)
			reorg.Observe = func(b *entity.Block) {
				require.Len(t, b.Ops, 20)
				for i := range b.Ops {
					touched = append(touched, b.Ops[i].Key)
				}
				last = b
			}
			res, err := reorg.Run(t.Context(), pace.Config{N: rounds})
			require.NoError(t, err)
			require.Equal(t, int64(rounds), res.Count)
			require.InDelta(t, 2*500, float64(res.Rows)/rounds, 150, "rows that a reorg deletes and inserts")
			spread(t, d, touched)

			head, err := cp.Entities.Head(t.Context())
			require.NoError(t, err)
			if cp.Entities.Temporal() {
				require.Equal(t, cp.Ready.Head+1, head.Number, "all but the last block were taken back")
				sameRows(t, cp, last)
			} else {
				require.Equal(t, cp.Ready.Head+rounds, head.Number)
			}
		})
	}
}

// spread: each quarter of the entities, by their creation, has its part of the keys,
// and few come twice.
func spread(t *testing.T, d bench.Dataset, touched []entity.Key) {
	t.Helper()
	order := map[entity.Key]int{}
	for b, err := range d.Source.Blocks() {
		require.NoError(t, err)
		for i := range b.Ops {
			if _, old := order[b.Ops[i].Key]; !old {
				order[b.Ops[i].Key] = len(order)
			}
		}
	}
	var quarters [4]int
	different := map[entity.Key]bool{}
	for _, key := range touched {
		quarters[4*order[key]/len(order)]++
		different[key] = true
	}
	for _, n := range quarters {
		require.Greater(t, n, len(touched)/8, "%v", quarters)
	}
	require.Greater(t, len(different), len(touched)/3)
}

// sameRows: the block that stayed gives its entities the attributes that they had
// before, with other values.
func sameRows(t *testing.T, cp *bench.Copy, b *entity.Block) {
	t.Helper()
	before, err := cp.Entities.At(t.Context(), cp.Ready.Head)
	require.NoError(t, err)
	defer before.Close()
	for i := range b.Ops {
		e, err := before.Get(t.Context(), b.Ops[i].Key)
		require.NoError(t, err)
		require.Equal(t, slices.Sorted(maps.Keys(e.StringAttributes)), slices.Sorted(maps.Keys(b.Ops[i].StringAttributes)))
		require.Equal(t, slices.Sorted(maps.Keys(e.NumericAttributes)), slices.Sorted(maps.Keys(b.Ops[i].NumericAttributes)))
		require.NotEqual(t, e.StringAttributes, b.Ops[i].StringAttributes)
	}
}

// TestReorgFindsWhatIsWrong: a store whose history is another one yields no figures.
func TestReorgFindsWhatIsWrong(t *testing.T) {
	cp := openSmall(t, reorgSource(t, "arkiv"))
	exec(t, cp, "UPDATE varve_blocks SET digest = zeroblob(32)")
	reorg, err := bench.NewReorg(cp, 0)
	require.NoError(t, err)
	_, err = reorg.Run(t.Context(), pace.Config{N: 1})
	require.ErrorIs(t, err, bench.ErrMismatch)
}
