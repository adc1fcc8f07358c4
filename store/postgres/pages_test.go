package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// TestTripsOfPages: a page of a query waits for the head, postings, versions and
// payloads, because each names what the next one reads. Versions in the log are in
// memory.
func TestTripsOfPages(t *testing.T) {
	ctx := t.Context()
	w, url := newWire(t, pgtest.NewURL(t))
	db, err := store.Open(ctx, url, &store.Options{Readers: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(ctx, nil)
	require.NoError(t, err)
	for b := range byte(20) {
		block := entity.Block{Number: uint64(b) + 1}
		for i := range byte(150) {
			block.Ops = append(block.Ops, entity.Op{
				Kind: entity.Create, OpIndex: uint32(i), Key: entity.Key{b, i}, BTL: 1000, Content: []byte("x"),
				StringAttributes:  map[string]string{"n": fmt.Sprint(i)},
				NumericAttributes: map[string]uint64{"cpu": uint64(i)},
			})
		}
		_, err = ents.Apply(ctx, block)
		require.NoError(t, err)
	}
	for _, merged := range []bool{false, true} {
		most := 2
		if merged {
			most = 4
			require.NoError(t, ents.Flush(ctx))
		}
		for _, text := range []string{`n = "4"`, `cpu >= 140`, `n = "4" && cpu < 10`} {
			q, err := query.Parse(text)
			require.NoError(t, err)
			read := func() {
				s, err := ents.At(ctx, store.Head)
				require.NoError(t, err)
				found := 0
				for _, err := range s.Query(ctx, q, &store.QueryOptions{Limit: 20}) {
					require.NoError(t, err)
					found++
				}
				require.Equal(t, 20, found)
				require.NoError(t, s.Close())
			}
			read()
			require.LessOrEqual(t, w.least(read), most, "%s, merged %t", text, merged)
		}
	}
}
