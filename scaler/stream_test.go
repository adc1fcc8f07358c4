package scaler

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/entity"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenStream is a line of testdata/mendoza.json. Digest is a store's digest
// at the end.
type goldenStream struct {
	Scale  float64 `json:"scale"`
	Seed   uint64  `json:"seed"`
	Digest string  `json:"digest"`
}

func TestStreamGolden(t *testing.T) {
	const file = "testdata/mendoza.json"
	var want, got []goldenStream
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &want))
	for _, g := range want {
		g.Digest = fold(t, Stream(Mendoza(), Options{Scale: g.Scale, Seed: g.Seed})).digest.String()
		got = append(got, g)
	}
	if *update {
		text, err := json.MarshalIndent(got, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
		return
	}
	require.Equal(t, want, got, "the profile or the generator has changed: if that is meant, go test -run Golden -update")
}

// requireSequences checks that every operation has a different place, and that
// the places rise.
func requireSequences(t require.TestingT, b *entity.Block) {
	last := uint64(0)
	for i := range b.Ops {
		at := entity.MakeSequence(0, b.Ops[i].TxIndex, b.Ops[i].OpIndex) + 1
		require.Greater(t, at, last, "block %d, operation %d", b.Number, i)
		last = at
	}
}

func TestStreamFolds(t *testing.T) {
	blocks := collect(t, Stream(Mendoza(), Options{Scale: 0.015, Seed: 11}))
	want := count(blocks)
	require.Equal(t, want.live, fold(t, source(blocks...)()).live(want.LastBlock))
	for kind := entity.Create; kind <= entity.Expire; kind++ {
		require.NotZero(t, want.ops[kind], "the stream has no %s", kind)
	}
	adds := newLedger()
	adds.rules.ExtendAdds = true
	for i := range blocks {
		require.EqualValues(t, i+1, blocks[i].Number, "no gaps")
		requireSequences(t, &blocks[i])
		require.NoError(t, adds.apply(&blocks[i]))
	}
}

func TestStreamFoldsTiny(t *testing.T) {
	p := tiny()
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Scale: rapid.SampledFrom([]float64{0.05, 0.1, 0.35, 1, 3}).Draw(t, "scale"),
			Seed:  rapid.Uint64().Draw(t, "seed"),
		}
		plan, err := Plan(p, o)
		require.NoError(t, err)
		all := collect(t, Stream(p, o))
		want := count(all)
		require.Equal(t, want.Totals, plan)
		require.Equal(t, want.live, fold(t, source(all...)()).live(plan.LastBlock))
		from := rapid.Uint64Range(0, uint64(len(all))).Draw(t, "from")
		o.From = 1 + from
		require.Equal(t, all[from:], append([]entity.Block{}, collect(t, Stream(p, o))...))
	})
}

// TestStreamFromAnywhere: a stream that begins at any block goes on as the whole one, whose
// entities live as long as any may.
func TestStreamFromAnywhere(t *testing.T) {
	p := tiny()
	item := &p.Kinds[0]
	item.Steps = nil
	item.Fate = Fate{Ephemeral: 1, Lifetime: Histogram{{1000, 89, 89}}} // into the third cycle, all but the first block's
	o := Options{Scale: 0.5, Seed: 3}
	all := collect(t, Stream(p, o))
	for from := range all {
		o.From = uint64(from + 1)
		require.Equal(t, all[from:], collect(t, Stream(p, o)), "from block %d", o.From)
	}
}

func TestStreamSmallerIsBeginning(t *testing.T) {
	small := collect(t, Stream(Mendoza(), Options{Scale: 0.002, Seed: 9}))
	large := collect(t, Stream(Mendoza(), Options{Scale: 0.0035, Seed: 9}))
	require.Equal(t, small, large[:len(small)])
}

func TestStreamOptions(t *testing.T) {
	for name, c := range map[string]struct {
		p    Profile
		o    Options
		want string
	}{
		"small": {Mendoza(), Options{Scale: 0.00009}, "want 0.0001 to 100"},
		"large": {Mendoza(), Options{Scale: 100.1}, "scale the result by copying"},
		"no":    {Mendoza(), Options{Scale: -1}, "want 0.0001 to 100"},
		"empty": {tiny(), Options{Scale: 0.001}, "use a scale of 0.044 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for b, err := range Stream(c.p, c.o) {
				n++
				require.ErrorContains(t, err, c.want)
				require.Empty(t, b.Ops)
			}
			require.Equal(t, 1, n)
			_, err := Plan(c.p, c.o)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestStreamReferences checks that whatever an attribute refers to exists
// before, except the next of a run, which exists at the end.
func TestStreamReferences(t *testing.T) {
	ids, keys := map[string]string{}, map[string]string{} // to their kind
	var awaited []string
	votes, hot := map[string]int{}, 0
	for b, err := range Stream(Mendoza(), Options{Scale: 0.012, Seed: 2}) {
		require.NoError(t, err)
		for _, op := range b.Ops {
			a := op.StringAttributes
			if op.Kind == entity.Create {
				keys[op.Key.String()] = a["type"]
				for _, name := range []string{"node_id", "blockId"} {
					if id, ok := a[name]; ok {
						ids[id] = a["type"]
					}
				}
			}
			if node, ok := a["assigned_node"]; ok {
				require.Equal(t, "node", ids[node])
			}
			if key, ok := a["proposalKey"]; ok && op.Kind == entity.Create {
				require.Equal(t, "proposal", keys[key])
				votes[key]++
				hot = max(hot, votes[key])
			}
			if next := a["nextBlockId"]; next != "" {
				awaited = append(awaited, next)
			}
		}
	}
	require.NotEmpty(t, awaited)
	for _, id := range awaited {
		require.Equal(t, "video-chunk", ids[id], "chunk %s follows another and never comes", id)
	}
	require.Greater(t, hot, 500, "some proposal has more votes than the read mix asks for at a time")
}

func TestStreamMemoryIsFlat(t *testing.T) {
	var least, most uint64
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	n := 0
	for b, err := range Stream(Mendoza(), Options{Scale: 0.06, Seed: 1}) {
		require.NoError(t, err)
		n += len(b.Ops)
		if b.Number%6900 == 0 {
			h := heap()
			if least == 0 {
				least = h
			}
			least, most = min(least, h), max(most, h)
		}
	}
	require.Greater(t, n, 48_000, "250 MB went by")
	require.Less(t, most-least, uint64(8<<20))
}
