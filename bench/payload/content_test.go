package payload

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// TestContents: payloads have their size and are the same again; JSON is JSON and compresses about
// as much as JSON does, random bytes do not.
func TestContents(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for name, content := range Contents {
		for _, n := range []int{1 << 10, 5 << 10, 50 << 10} {
			text := content(rand.New(rand.NewPCG(1, 2)), n)
			require.Len(t, text, n)
			require.Equal(t, text, content(rand.New(rand.NewPCG(1, 2)), n))
			packed := len(encoder.EncodeAll(text, nil))
			if name == "json" {
				require.True(t, json.Valid(text))
				require.InDelta(t, 0.3, float64(packed)/float64(n), 0.15)
			} else {
				require.Greater(t, packed, n*95/100)
			}
		}
	}
}
