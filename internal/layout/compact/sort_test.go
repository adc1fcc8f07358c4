package compact

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// TestRanks: ranks compare as what they are made of is sorted.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := []layout.Order{
			{Name: "a", Kind: entity.String, Desc: rapid.Bool().Draw(t, "a")},
			{Name: "n", Kind: entity.Numeric, Desc: rapid.Bool().Draw(t, "n")},
			{Name: "b", Kind: entity.String, Desc: rapid.Bool().Draw(t, "b")},
		}
		order = order[:rapid.IntRange(0, 3).Draw(t, "columns")]
		a, b := drawPosition(t, order), drawPosition(t, order)
		require.Equal(t, comparePositions(order, a, b), bytes.Compare(rankOf(order, a), rankOf(order, b)))
	})
}

func drawPosition(t *rapid.T, order []layout.Order) *layout.Position {
	texts := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", "a", "a\x00", "a\x00\x01", "a\x00b", "a\x01", "a\x02", "aa", "b", "é", "\U0010ffff", "\U0010ffff\x00"}
	pos := &layout.Position{Sequence: rapid.SampledFrom([]uint64{0, 1, 1 << 63, 1<<64 - 1}).Draw(t, "sequence")}
	pos.Key[0] = rapid.SampledFrom([]byte{0, 1, 0xff}).Draw(t, "key")
	for _, o := range order {
		v := layout.SortValue{Missing: rapid.IntRange(0, 4).Draw(t, "missing") == 4}
		switch {
		case v.Missing:
		case o.Kind == entity.Numeric:
			v.Value = query.Number(rapid.SampledFrom([]uint64{0, 1, 255, 256, 1 << 63, 1<<64 - 1}).Draw(t, "number"))
		default:
			v.Value = query.Text(rapid.SampledFrom(texts).Draw(t, "text"))
		}
		pos.Values = append(pos.Values, v)
	}
	return pos
}

func comparePositions(order []layout.Order, a, b *layout.Position) int {
	for i, o := range order {
		x, y := a.Values[i], b.Values[i]
		n := cmp.Or(cmp.Compare(x.Value.Text, y.Value.Text), cmp.Compare(x.Value.Number, y.Value.Number))
		switch {
		case x.Missing && y.Missing:
			continue
		case x.Missing:
			return 1
		case y.Missing:
			return -1
		case o.Desc:
			n = -n
		}
		if n != 0 {
			return n
		}
	}
	return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), bytes.Compare(a.Key[:], b.Key[:]))
}
