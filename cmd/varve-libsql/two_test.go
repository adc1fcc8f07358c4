package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// TestTwoLibraries: libSQL and the SQLite beside it in this program open a file one at a
// time, since their locks are those of the process and closing by one drops both.
func TestTwoLibraries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	for _, order := range [][2]string{{"libsql:", "sqlitego:"}, {"sqlitego:", "libsql:"}} {
		first, err := store.Open(t.Context(), order[0]+path, nil)
		require.NoError(t, err)
		again, err := store.Open(t.Context(), order[0]+path, &store.Options{ReadOnly: true})
		require.NoError(t, err)
		require.NoError(t, first.Close())
		for _, opts := range []*store.Options{nil, {ReadOnly: true}} {
			_, err = store.Open(t.Context(), order[1]+path, opts)
			require.ErrorIs(t, err, store.ErrLocked, "%v", order)
		}
		require.NoError(t, again.Close())
		second, err := store.Open(t.Context(), order[1]+path, nil)
		require.NoError(t, err)
		require.NoError(t, second.Close())
	}
}
