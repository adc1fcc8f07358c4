package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/storetest"
)

// TestVerifyWrites: a check sorts a history without its payloads, which would all
// go through a temporary file.
func TestVerifyWrites(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv"} {
		t.Run(layout, func(t *testing.T) {
			url := "sqlite://" + filepath.Join(t.TempDir(), "x.db")
			open := func() (*store.DB, *store.Entities) {
				db, err := store.Open(t.Context(), url, &store.Options{Memory: 32 << 20})
				require.NoError(t, err)
				ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: layout})
				require.NoError(t, err)
				return db, ents
			}
			db, ents := open()
			const keys, blocks, size = 200, 20, 10_000
			storetest.ApplyVersions(t, ents, keys, blocks, size)
			require.NoError(t, db.Close()) // which copies the log
			db, ents = open()
			defer func() { require.NoError(t, db.Close()) }()
			before := ioCount(t, "wchar")
			report, err := ents.Verify(t.Context())
			require.NoError(t, err)
			require.True(t, report.Digest)
			require.Less(t, ioCount(t, "wchar")-before, keys*blocks*size/4)
		})
	}
}
