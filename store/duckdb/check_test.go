package duckdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/storetest"
)

// TestVerifyMemory: a check compares a history of more payloads than the memory
// holds with its digest, and reads all that the engine has.
func TestVerifyMemory(t *testing.T) {
	for _, tt := range []struct {
		layout string
		memory int64
	}{
		{"compact", 96 << 20},
		{"arkiv", 128 << 20}, // thirteen indexes take 30 MiB
		{"arkiv-columnar", 96 << 20},
	} {
		t.Run(tt.layout, func(t *testing.T) {
			db, err := store.Open(t.Context(), "duckdb://"+newPath(t), &store.Options{Memory: tt.memory})
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: tt.layout})
			require.NoError(t, err)
			storetest.ApplyVersions(t, ents, 400, 20, 16<<10)
			report, err := db.Check(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, report.Err())
			require.Equal(t, store.Sound, report.Outcome)
		})
	}
}
