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

// TestTripsOfPages: how often a page waits for the server. The head is one, the
// postings of all terms and the place of the page before are the second, and the
// versions with their payloads the third. Versions in the log are in memory, their
// payloads are not. A page that goes on looks up the block of its cursor too.
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
				Kind: entity.Create, OpIndex: uint32(i), Key: entity.Key{b, i}, BTL: 1000, Content: []byte{b, i}, Owner: entity.Address{i % 50},
				StringAttributes:  map[string]string{"n": fmt.Sprint(i), "all": "x"},
				NumericAttributes: map[string]uint64{"cpu": uint64(i)},
			})
		}
		_, err = ents.Apply(ctx, block)
		require.NoError(t, err)
	}
	pages := func(text string, order ...store.Order) (trips [2]int) {
		q, err := query.Parse(text)
		require.NoError(t, err)
		var after store.Cursor
		for page := range trips {
			var next store.Cursor
			read := func() {
				s, err := ents.At(ctx, store.Head)
				require.NoError(t, err)
				found, options := 0, store.QueryOptions{Limit: 8, After: after, Order: order}
				for e, err := range s.Query(ctx, q, &options) {
					require.NoError(t, err)
					require.Equal(t, e.Key[:2], e.Content)
					next, err = s.Cursor(e, &options)
					require.NoError(t, err)
					found++
				}
				require.Equal(t, 8, found)
				require.NoError(t, s.Close())
			}
			read()
			trips[page], after = w.least(read), next
		}
		return trips
	}
	cases := []struct {
		text  string
		sort  []store.Order
		trips [2]int // of the first page and of the next one
	}{
		{text: `n = "4"`, trips: [2]int{3, 3}},
		{text: `n = "4" && cpu < 10`, trips: [2]int{3, 3}},
		{text: `n = "4" || cpu >= 140`, trips: [2]int{3, 3}},
		{text: `cpu >= 140`, trips: [2]int{3, 3}},
		{text: `$owner = "` + entity.Address{4}.String() + `"`, trips: [2]int{3, 3}},
		{text: `all = "x" && n = "4"`, trips: [2]int{3, 3}},
		{text: `$all`, trips: [2]int{3, 4}},                                                              // ids are read from the place on
		{text: `n = "4"`, sort: []store.Order{{Name: "cpu", Kind: entity.Numeric}}, trips: [2]int{4, 4}}, // all of them, and then payloads
	}
	for _, c := range cases {
		trips := pages(c.text, c.sort...)
		require.LessOrEqual(t, trips[0], c.trips[0], "%s in the log", c.text)
		require.LessOrEqual(t, trips[1], c.trips[1], "%s in the log", c.text)
	}

	// A server that is slow to send rows, as on a busy machine, is asked for them
	// in another way, which takes a round trip more.
	require.NoError(t, ents.Flush(ctx))
	all, want := 0, 0
	for _, c := range cases {
		trips := pages(c.text, c.sort...)
		for page := range trips {
			require.LessOrEqual(t, trips[page], c.trips[page]+1, "%s, page %d", c.text, page)
			all, want = all+trips[page], want+c.trips[page]
		}
	}
	require.LessOrEqual(t, all, want+2)
}
