package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// FuzzCursor: a forged cursor is refused, or is one that a page may begin
// after.
func FuzzCursor(f *testing.F) {
	key := entity.Key{1, 31: 2}
	for _, o := range cursorOrders {
		s := &Snapshot{at: 7}
		c, err := s.Cursor(&entity.Entity{Key: key, Sequence: 7 << 32, StringAttributes: map[string]string{"a": "é\x00"}}, &QueryOptions{Order: o})
		require.NoError(f, err)
		f.Add(string(c))
	}
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range cursorOrders {
			order, err := checkOrder(o)
			require.NoError(t, err)
			state, err := Cursor(text).decode(order)
			if err != nil {
				require.ErrorIs(t, err, ErrInvalid)
				continue
			}
			at := state.position()
			require.Len(t, at.Values, len(order))
			for i, o := range order {
				require.Equal(t, o.Kind, at.Values[i].Value.Kind)
			}
			require.Len(t, state.Digest, digestPrefix)
		}
	})
}

var cursorOrders = [][]Order{
	nil, {{Name: "a", Kind: entity.String}}, {{Name: "a", Kind: entity.Numeric, Desc: true}}, {{Name: entity.AttrExpiration}},
	{{Name: "a", Kind: entity.String, Desc: true}, {Name: "a", Kind: entity.Numeric}, {Name: entity.AttrKey}},
}
