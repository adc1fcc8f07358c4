package scaler

import (
	"encoding/json"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// TestMendozaAnswers checks that the read mixes find something.
func TestMendozaAnswers(t *testing.T) {
	want := map[string]int{
		"status=pending": 50, "status=active": 20, "type=proposal": 20, "type=vote": 1000, "type=video-chunk": 1000,
		"type=sensor_data": 800, "type=node": 200, "nextBlockId=chunk_2": 1,
	}
	got, gpus, voters := map[string]int{}, 0, map[entity.Address]int{}
	for b, err := range Stream(Mendoza(), Options{Scale: 0.01, Seed: 1}) {
		require.NoError(t, err)
		for _, op := range b.Ops {
			for name, value := range op.StringAttributes {
				got[name+"="+value]++
			}
			if op.NumericAttributes["allocatable_gpu"] > 4 {
				gpus++
			}
			if op.StringAttributes["type"] == "vote" {
				voters[op.Owner]++
			}
		}
	}
	for pair, n := range want {
		require.GreaterOrEqual(t, got[pair], n, pair)
	}
	require.NotZero(t, gpus)
	most := 0
	for _, n := range voters {
		most = max(most, n)
	}
	require.Greater(t, len(voters), 500, "many vote once")
	require.Greater(t, most, 100, "few vote often")
}

func TestPayloads(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer encoder.Close()
	for size := uint64(MinPayload); size < 200; size++ {
		doc := content(Document, size, size)
		require.Len(t, doc, int(size))
		require.True(t, json.Valid(doc), "%s", doc)
		require.Len(t, content(Binary, size, size), int(size))
	}
	ratio := func(form Form) float64 {
		text := content(form, 100_000, 1)
		return float64(len(encoder.EncodeAll(text, nil))) / float64(len(text))
	}
	require.InDelta(t, 0.55, ratio(Document), 0.05, "what the comment on Form says")
	require.InDelta(t, 1, ratio(Binary), 0.01)
}
