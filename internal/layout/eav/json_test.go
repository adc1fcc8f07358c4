package eav

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/entity"
)

func encode(e *entity.Entity) (string, string) { return encodeAttributes(textsOf(e), numbersOf(e)) }

func genEntity(t *rapid.T) *entity.Entity {
	e := &entity.Entity{
		StringAttributes:  rapid.MapOf(rapid.StringN(1, 8, -1), rapid.String()).Draw(t, "strings"),
		NumericAttributes: rapid.MapOf(rapid.StringN(1, 8, -1), rapid.Uint64()).Draw(t, "numbers"),
		Sequence:          rapid.Uint64().Draw(t, "sequence"),
		Expiration:        rapid.Uint64().Draw(t, "expiration"),
	}
	for _, name := range []string{"$creator", "$key", "$owner"} {
		delete(e.StringAttributes, name)
	}
	e.Owner[0], e.Creator[1], e.Key[2] = 1, 2, 3
	return e
}

func TestAttributesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genEntity(t)
		texts, numbers := encode(want)
		got := &entity.Entity{Key: want.Key}
		require.NoError(t, decodeAttributes(got, []byte(texts), []byte(numbers)))
		require.Empty(t, cmp.Diff(want, got))
	})
}

func TestAttributesAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := genEntity(t)
		texts, numbers := encode(e)
		var s map[string]string
		var n map[string]uint64
		require.NoError(t, json.Unmarshal([]byte(texts), &s))
		require.NoError(t, json.Unmarshal([]byte(numbers), &n))
		require.Len(t, s, len(e.StringAttributes)+3)
		for name, value := range e.StringAttributes {
			require.Equal(t, value, s[name])
		}
		require.Len(t, n, len(e.NumericAttributes)+5)
	})
}

func TestDecodeRefusesDamage(t *testing.T) {
	texts, numbers := encode(&entity.Entity{StringAttributes: map[string]string{"a": "b"}})
	for _, damaged := range []string{"", "{", "null", "[]", `{"a"}`, `{"a":}`, `{"a":"b"`, `{"a":"b"}x`, `{"a":"b",}`, `{}`, texts[:len(texts)-2]} {
		require.Error(t, decodeAttributes(&entity.Entity{}, []byte(damaged), []byte(numbers)), "strings %q", damaged)
	}
	for _, damaged := range []string{"{", `{"a":-1}`, `{"a":1.5}`, `{"a":"1"}`, `{"a":18446744073709551616}`, `{}`} {
		require.Error(t, decodeAttributes(&entity.Entity{}, []byte(texts), []byte(damaged)), "numbers %q", damaged)
	}
}

func FuzzDecodeAttributes(f *testing.F) {
	texts, numbers := encode(&entity.Entity{StringAttributes: map[string]string{"a": "\"\\\n<"}})
	f.Add(texts, numbers)
	f.Fuzz(func(t *testing.T, texts, numbers string) {
		e := &entity.Entity{}
		if decodeAttributes(e, []byte(texts), []byte(numbers)) != nil {
			return
		}
		var s map[string]string
		require.NoError(t, json.Unmarshal([]byte(texts), &s), "%q", texts)
	})
}
