package remote

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// TestRoundTrips: a commit is one request to begin, one for each query that it needs, and
// one for all its writes and the commit together.
func TestRoundTrips(t *testing.T) {
	most := map[string]int{"arkiv": 4, "compact": 6}
	for layout, most := range most {
		t.Run(layout, func(t *testing.T) {
			db, es := openStore(t, newURL(t), layout)
			w := tap(db.Engine())
			for n := range uint64(30) {
				_, err := es.Apply(t.Context(), block(n+1))
				require.NoError(t, err)
				require.LessOrEqual(t, len(w.trips()), most, "block %d", n+1)
			}
			view, err := es.At(t.Context(), store.Head)
			require.NoError(t, err)
			_, err = view.Get(t.Context(), block(30).Ops[0].Key)
			require.NoError(t, err)
			require.NoError(t, view.Close())
			require.LessOrEqual(t, len(w.trips()), 6, "a read")
		})
	}
}
