package scaler

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// counted is what blocks amount to, by following the entities.
type counted struct {
	Totals
	ops            [entity.Expire + 1]uint64
	live           uint64
	texts, numbers uint64 // rows
}

// count counts blocks that begin with the first of a stream.
func count(blocks []entity.Block) (t counted) {
	t.Totals = Totals{Blocks: uint64(len(blocks)), FirstBlock: blocks[0].Number, LastBlock: blocks[len(blocks)-1].Number}
	now := map[entity.Key]*entity.Op{}
	for _, b := range blocks {
		for i := range b.Ops {
			op := &b.Ops[i]
			t.ops[op.Kind]++
			switch op.Kind {
			case entity.Create, entity.Update:
				now[op.Key] = op
			case entity.Delete, entity.Expire:
				delete(now, op.Key)
				continue
			}
			e := now[op.Key]
			t.PayloadRows++
			t.PayloadRowBytes += uint64(len(e.Content))
			t.texts += uint64(len(e.StringAttributes)) + SyntheticTexts
			t.numbers += uint64(len(e.NumericAttributes)) + SyntheticNumbers
		}
	}
	t.Entities, t.live = t.ops[entity.Create], uint64(len(now))
	t.AttributeRows = t.texts + t.numbers
	return t
}

func TestPlanIsExact(t *testing.T) {
	for _, o := range []Options{
		{Scale: 0.0001, Seed: 1}, {Scale: 0.0005, Seed: 2}, {Scale: 0.001, Seed: 3},
		{Scale: 0.0123, Seed: 4},
	} {
		plan, err := Plan(Mendoza(), o)
		require.NoError(t, err)
		require.Equal(t, count(collect(t, Stream(Mendoza(), o))).Totals, plan, "scale %v", o.Scale)
	}
}

// TestMendozaFigures checks the published figures, in their published digits,
// and the figures in the comments on Mendoza.
func TestMendozaFigures(t *testing.T) {
	p, err := Plan(Mendoza(), Options{Scale: 1, Seed: 1})
	require.NoError(t, err)
	between := func(low, high float64, got float64, what string) {
		t.Helper()
		require.True(t, low <= got && got < high, "%s: %v, want %v to %v", what, got, low, high)
	}
	entities, versions := float64(p.Entities), float64(p.PayloadRows)
	require.Equal(t, uint64(800_000), p.Entities)
	require.Equal(t, uint64(1_150_000), p.Blocks)
	between(19.5e6, 20.5e6, float64(p.Rows()), "rows")
	between(5000, 5250, float64(p.PayloadRowBytes)/versions, "payload bytes")
	between(1.04, 1.06, versions/entities, "versions an entity")
	some := count(collect(t, Stream(Mendoza(), Options{Scale: 0.01, Seed: 1})))
	between(14.5, 15.5, float64(some.texts)/float64(some.PayloadRows), "string attributes a version")
	between(8.5, 9.5, float64(some.numbers)/float64(some.PayloadRows), "numeric attributes a version")

	var persistent, ephemeral, deleted float64
	m := Mendoza()
	for _, k := range m.Kinds {
		sum := float64(k.Fate.Persistent + k.Fate.Ephemeral + k.Fate.Deleted)
		share := float64(k.Count) / float64(m.Entities()) / sum
		persistent += share * float64(k.Fate.Persistent)
		ephemeral += share * float64(k.Fate.Ephemeral)
		deleted += share * float64(k.Fate.Deleted)
	}
	require.InDelta(t, 0.43, persistent, 1e-9)
	require.InDelta(t, 0.56, ephemeral, 1e-9)
	require.InDelta(t, 0.01, deleted, 1e-9)
}

// TestMendozaBatches counts the entities of each block that creates any, and
// compares them with the comment on Mendoza.
func TestMendozaBatches(t *testing.T) {
	var n, sum, squares, one, two float64
	for b, err := range Stream(Mendoza(), Options{Scale: 0.02, Seed: 1}) {
		require.NoError(t, err)
		created := 0.0
		for i := range b.Ops {
			if b.Ops[i].Kind == entity.Create {
				created++
			}
		}
		switch created {
		case 0:
			continue
		case 1:
			one++
		case 2:
			two++
		}
		n, sum, squares = n+1, sum+created, squares+created*created
	}
	require.InDelta(t, 10, sum/n, 1)
	require.InDelta(t, 37, math.Sqrt(squares/n-sum*sum/n/n), 3)
	require.Greater(t, one/n, 0.5, "median")
	require.Greater(t, (one+two)/n, 0.75, "quartile")
}
