package dcseed

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// baseBlocks streams blocks of 0 to 12 operations whose keys count from 1.
func baseBlocks(n int) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		next := byte(0)
		for i := range n {
			b := entity.Block{Number: uint64(1_000 + 3*i)}
			for k := range splitmix.Mix(uint64(i)) % 13 {
				next++
				b.Ops = append(b.Ops, entity.Op{Kind: entity.Create, Key: entity.Key{0xba, byte(i >> 8), byte(i), next},
					TxIndex: uint32(k / 2), OpIndex: uint32(k % 2), BTL: 10})
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

func isBase(op entity.Op) bool { return op.Key[0] == 0xba && op.StringAttributes == nil }

func TestMix(t *testing.T) {
	m := newModel(t, small())
	load := collect(t, m.load(40))
	var base []entity.Key
	for _, b := range collect(t, baseBlocks(5_000)) {
		for _, op := range b.Ops {
			base = append(base, op.Key)
		}
	}
	for _, percent := range []int{30, 70, 1, 100} {
		mixed := collect(t, Mix(baseBlocks(50_000), m.load(40), percent))
		require.Len(t, mixed, len(load))
		fromDC, fromBase := 0, 0
		for i, b := range mixed {
			require.NoError(t, b.Validate())
			require.Equal(t, load[i].Number, b.Number)
			require.Equal(t, load[i].Ops, b.Ops[:len(load[i].Ops)], "operations of the data centres stay as they are")
			fromDC += len(load[i].Ops)
			requireRising(t, b)
			for _, op := range b.Ops[len(load[i].Ops):] {
				require.True(t, isBase(op))
				if fromBase < len(base) {
					require.Equal(t, base[fromBase], op.Key, "the base keeps its order")
				}
				fromBase++
			}
			want := float64(fromDC) * float64(100-percent) / float64(percent)
			require.InDelta(t, want, fromBase, 13, "share after block %d", i)
		}
	}
}

// requireRising checks that no two operations of a block share their place.
func requireRising(t *testing.T, b entity.Block) {
	t.Helper()
	for i := 1; i < len(b.Ops); i++ {
		before, op := b.Ops[i-1], b.Ops[i]
		require.True(t, op.TxIndex > before.TxIndex || op.TxIndex == before.TxIndex && op.OpIndex > before.OpIndex,
			"operation %d of block %d", i, b.Number)
	}
}

func TestMixEndsWithEither(t *testing.T) {
	m := newModel(t, small())
	mixed := collect(t, Mix(baseBlocks(30), m.load(1_000), 50))
	require.Less(t, len(mixed), 10)
	n := 0
	for _, b := range mixed {
		for _, op := range b.Ops {
			if isBase(op) {
				n++
			}
		}
	}
	for _, b := range collect(t, baseBlocks(30)) {
		n -= len(b.Ops)
	}
	require.Zero(t, n, "what base has left is not lost")
	for _, err := range Mix(baseBlocks(30), m.load(1_000), 50) {
		require.NoError(t, err)
		break
	}
}

func TestMixErrors(t *testing.T) {
	m := newModel(t, small())
	broken := errors.New("broken")
	failing := func(yield func(entity.Block, error) bool) { yield(entity.Block{}, broken) }
	for name, test := range map[string]struct {
		mix  iter.Seq2[entity.Block, error]
		want string
	}{
		"base": {Mix(failing, m.load(5), 50), "broken"}, "dc": {Mix(baseBlocks(5), failing, 50), "broken"},
	} {
		errs := 0
		for _, err := range test.mix {
			errs++
			require.ErrorContains(t, err, test.want, name)
		}
		require.Equal(t, 1, errs, name)
	}
}
