package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/store"
)

// TestBackup makes a backup beside a writer, restores it, and damages things.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	url, other := "sqlite:"+filepath.Join(dir, "a.db"), "sqlite:"+filepath.Join(dir, "b.db")
	db, err := store.Open(t.Context(), url+"?layout=compact", nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), store.EntityOptions{})
	require.NoError(t, err)
	apply := func(number uint64) {
		_, err := ents.Apply(context.Background(), store.Block{Number: number, Ops: []store.Op{
			{Kind: store.Create, Key: store.Key{byte(number)}, BTL: 100, Content: make([]byte, 500)},
		}})
		require.NoError(t, err)
	}
	apply(1)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for n := range uint64(50) {
			apply(2 + n)
		}
	}()
	code, out, errs := varve("backup", url, filepath.Join(dir, "bk"))
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "entities (compact) up to block")
	<-written
	require.NoError(t, db.Close())
	code, _, errs = varve("backup", url, filepath.Join(dir, "bk"))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "exists already")

	code, restored, errs := varve("restore", filepath.Join(dir, "bk"), other)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, restored[:len(restored)-1])
	code, _, errs = varve("restore", filepath.Join(dir, "bk"), other)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "exists already")
	code, out, errs = varve("check", other)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "digests computed anew")
	code, out, errs = varve("check", "--repair", other)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "rebuilt indexes")

	rows := filepath.Join(dir, "bk", "rows.zst")
	content, err := os.ReadFile(rows)
	require.NoError(t, err)
	content[len(content)/2] ^= 1
	require.NoError(t, os.WriteFile(rows, content, 0o600))
	code, _, errs = varve("restore", filepath.Join(dir, "bk"), "sqlite:"+filepath.Join(dir, "c.db"))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "sha256")
	left, err := filepath.Glob(filepath.Join(dir, "*c.db*"))
	require.NoError(t, err)
	require.Empty(t, left, "a restore that failed leaves nothing")
}
