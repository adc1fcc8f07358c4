package jsonuint_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/entity"
)

// TestUint: a number is read back, also after it was a number in JavaScript.
func TestUint(t *testing.T) {
	for _, n := range []uint64{0, 1, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MaxUint64} {
		text, err := json.Marshal(jsonuint.Uint(n))
		require.NoError(t, err)
		var double any
		require.NoError(t, json.Unmarshal(text, &double)) // as JavaScript does
		again, err := json.Marshal(double)
		require.NoError(t, err)
		var got jsonuint.Uint
		require.NoError(t, json.Unmarshal(again, &got), "%s", again)
		require.Equal(t, n, uint64(got))
		require.NoError(t, json.Unmarshal(jsonuint.Append(nil, n), &got))
		require.Equal(t, n, uint64(got))
	}
	var got jsonuint.Uint
	require.NoError(t, json.Unmarshal([]byte("18446744073709551615"), &got), "a number of any size is taken")
	require.Equal(t, uint64(math.MaxUint64), uint64(got))
	for text, want := range map[string]uint64{`1.0`: 1, `1e3`: 1000, `0e0`: 0, `9007199254740991.0`: 1<<53 - 1} {
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		require.Equal(t, want, uint64(got), text)
	}
	for _, text := range []string{`-1`, `1.5`, `1e19`, `"1e3"`, `9007199254740993.0`, `18446744073709551616`, `""`, `"x"`, `" 1"`, `"0x1"`, `true`, `[]`, `{}`} {
		var wrong *jsonuint.Error
		require.ErrorAs(t, json.Unmarshal([]byte(text), &got), &wrong, text)
		require.Equal(t, text, wrong.Literal)
	}
}

func TestExpiration(t *testing.T) {
	for n, want := range map[uint64]string{7: "7", entity.MaxBlock: "null", entity.MaxBlock - 1: `"9223372036854775806"`} {
		text, err := json.Marshal(jsonuint.Expiration(n))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}
