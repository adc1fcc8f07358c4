package packed_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/packed"
)

func TestOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		x, y := packed.AppendOrdered(nil, a), packed.AppendOrdered(nil, b)
		require.Equal(t, a < b, bytes.Compare(x, y) < 0)
		require.Equal(t, a, packed.Ordered(x))
	})
	require.Equal(t, uint64(math.MaxUint64), packed.Ordered(packed.AppendOrdered(nil, math.MaxUint64)))
	require.Len(t, packed.AppendOrdered(nil, 0), 1)
}
