package scaler

import (
	"encoding/json"
	"strings"
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

func TestProfileValidate(t *testing.T) {
	requireValid(t, Mendoza())
	for want, spoil := range map[string]func(p *Profile){
		"as many blocks as entities":      func(p *Profile) { p.CycleBlocks = 8 },
		"want 1 to 128":                   func(p *Profile) { p.Kinds = nil },
		"batches: values from 0":          func(p *Profile) { p.Batches = Histogram{{1000, 0, 1}} },
		"bar 1, 1..2, does not rise":      func(p *Profile) { p.Batches = Histogram{{500, 1, 1}, {500, 1, 2}} },
		"more than 16384":                 func(p *Profile) { p.Batches = Histogram{{1000, 1, 20000}} },
		"needs entities":                  func(p *Profile) { p.Kinds[0].Count = 0 },
		"payload size: values from 10":    func(p *Profile) { p.Kinds[0].Payload.Size = Histogram{{1000, 10, 100}} },
		"needs a fate":                    func(p *Profile) { p.Kinds[0].Fate = Fate{} },
		"lifetime: bars add up to 0":      func(p *Profile) { p.Kinds[0].Fate.Lifetime = nil },
		"deleted after: bars add up to 0": func(p *Profile) { p.Kinds[0].Fate.DeletedAfter = nil },
		"step 0: cannot be delete":        func(p *Profile) { p.Kinds[0].Steps[0].Op = entity.Delete },
		"step 0: values from 0":           func(p *Profile) { p.Kinds[0].Steps[0].After = Histogram{{1000, 0, 0}} },
		`attribute "type" is there twice`: func(p *Profile) { p.Kinds[0].Texts[0].Name = "type" },
		`attribute "n" is there twice`:    func(p *Profile) { p.Kinds[0].Numbers[1].Name = "n" },
		"no values to choose":             func(p *Profile) { p.Kinds[0].Texts[4].Values = nil },
		"the pool is empty":               func(p *Profile) { p.Kinds[0].Texts[4].Source = Pooled },
		"its kind has no serial":          func(p *Profile) { p.Kinds[0].Texts[0].Source = Hex },
		`no kind "x"`:                     func(p *Profile) { p.Kinds[0].Texts[2].Of = "x" },
		`kind "item" may have ended`:      func(p *Profile) { p.Kinds[0].Texts[2].Of = "item" },
		`kind "group" has no serial`:      func(p *Profile) { p.Kinds[1].Texts = nil },
		"more than 32 attributes":         func(p *Profile) { p.Kinds[0].Texts = make([]Text, 33) },
	} {
		p := tiny()
		spoil(&p)
		err := p.Validate()
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), `profile "tiny": `), err)
	}
}
