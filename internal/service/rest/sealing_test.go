package rest_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"
)

// tamper changes the database past the store.
func tamper(t testing.TB, db *store.DB, statement string) {
	t.Helper()
	tx, err := db.Engine().Begin(context.Background())
	require.NoError(t, err)
	n, err := tx.Exec(context.Background(), statement)
	require.NoError(t, err)
	require.Positive(t, n)
	require.NoError(t, tx.Commit(context.Background()))
}

// TestSealing: stored contents cannot be read, changed or moved.
func TestSealing(t *testing.T) {
	w := newWorldAt(t, "sqlite:"+filepath.Join(t.TempDir(), "varve.db")+"?layout=arkiv", service.Options{CacheBytes: -1}, service.Serving{})
	for i := range 3 {
		require.Equal(t, 201, w.do("PUT", payloadPath(i), "a secret payload", "Content-Type: text/plain").Code)
	}
	ents, err := w.db.Entities(t.Context(), nil)
	require.NoError(t, err)
	snap, err := ents.At(t.Context(), store.Head)
	require.NoError(t, err)
	for e, err := range snap.Query(t.Context(), nil, nil) {
		require.NoError(t, err)
		require.True(t, seal.IsSealed(e.Content))
		require.NotContains(t, string(e.Content), "secret")
	}
	require.NoError(t, snap.Close())
	tamper(t, w.db, "UPDATE payloads SET payload = substr(payload, 1, 40) || x'0001020304050607' || substr(payload, 49) WHERE from_block = 1")
	tamper(t, w.db, "UPDATE payloads SET payload = (SELECT payload FROM payloads WHERE from_block = 3) WHERE from_block = 2")
	for i := range 2 {
		p := w.problem(w.do("GET", entityPath(i), ""), 500, "tampered")
		require.NotContains(t, p.Detail, "secret")
	}
	require.Equal(t, 200, w.do("GET", entityPath(2), "").Code)
}
