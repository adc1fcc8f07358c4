package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// TestBackup makes a backup while a writer goes on, restores it, and damages
// things.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	url, other := "sqlite:"+filepath.Join(dir, "a.db"), "sqlite:"+filepath.Join(dir, "b.db")
	db, err := store.Open(t.Context(), url+"?layout=compact", nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	apply := func(number uint64) {
		_, err := ents.Apply(context.Background(), entity.Block{Number: number, Ops: []entity.Op{
			{Kind: entity.Create, Key: entity.Key{byte(number)}, BTL: 100, Content: make([]byte, 500)},
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
	require.Contains(t, out, "digests recomputed")
	code, out, errs = varve("check", "--repair", other)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "rebuilt indexes")

	content, err := os.ReadFile(filepath.Join(dir, "bk"))
	require.NoError(t, err)
	for name, damaged := range map[string][]byte{
		"flipped": append(append(bytes.Clone(content[:len(content)/2]), content[len(content)/2]^1), content[len(content)/2+1:]...),
		"cut":     content[:len(content)-1], "empty": nil, "other": []byte("{}"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bk"), damaged, 0o600))
		code, _, errs = varve("restore", filepath.Join(dir, "bk"), "sqlite:"+filepath.Join(dir, "c.db"))
		require.Equal(t, cli.ExitError, code, name)
		require.Contains(t, errs, store.ErrCorrupt.Error(), name)
		left, err := filepath.Glob(filepath.Join(dir, "*c.db*"))
		require.NoError(t, err)
		require.Empty(t, left, "%s: a restore that failed leaves nothing", name)
	}
}

// TestLibraryBackup: the command restores the file of DB.Backup, and DB.Restore that of the command.
func TestLibraryBackup(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	heads := written(t, "sqlite:"+file("a.db"), 5)
	db, err := store.Open(t.Context(), "sqlite:"+file("a.db"), nil)
	require.NoError(t, err)
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	_, err = evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
	require.NoError(t, err)
	var byLibrary bytes.Buffer
	info, err := db.Backup(t.Context(), &byLibrary, nil)
	require.NoError(t, errors.Join(err, db.Close()))
	require.Equal(t, heads[4], info.Head)
	require.Equal(t, uint64(1), info.EventHead)
	require.NoError(t, os.WriteFile(file("library"), byLibrary.Bytes(), 0o600))
	code, out, errs := varve("restore", file("library"), "sqlite:"+file("b.db"), "--json")
	require.Equal(t, cli.ExitOK, code, errs)
	var printed struct{ Contents store.BackupInfo }
	require.NoError(t, json.Unmarshal([]byte(out), &printed))
	require.Equal(t, info, printed.Contents)

	code, _, errs = varve("backup", "sqlite:"+file("b.db"), file("command"), "--no-verify")
	require.Equal(t, cli.ExitOK, code, errs)
	byCommand, err := os.ReadFile(file("command"))
	require.NoError(t, err)
	require.Equal(t, byLibrary.Bytes(), byCommand, "of the same rows the same file")
	restored, err := store.Open(t.Context(), "sqlite:"+file("c.db"), nil)
	require.NoError(t, err)
	defer restored.Close()
	held, err := restored.Restore(t.Context(), bytes.NewReader(byCommand), nil)
	require.NoError(t, err)
	require.Equal(t, info, held)
	report, err := restored.Check(t.Context(), nil)
	require.NoError(t, errors.Join(err, report.Err()))
	require.True(t, report.Digest)
}

// written makes a store with an entity in each of some blocks, and returns the head at each.
func written(t *testing.T, url string, blocks uint64) (heads []store.BlockHeader) {
	t.Helper()
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	for n := range blocks {
		_, err := ents.Apply(t.Context(), entity.Block{Number: n, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(n)}, BTL: 5, Content: []byte("content")}}})
		require.NoError(t, err)
		head, err := ents.Head(t.Context())
		require.NoError(t, err)
		heads = append(heads, head)
	}
	return heads
}

// TestRestoreAt: a backup becomes the store as it was at a block, which the check after it
// agrees with; what cannot be had leaves nothing.
func TestRestoreAt(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv", "simple"} {
		t.Run(layout, func(t *testing.T) {
			dir := t.TempDir()
			src, backup := "sqlite:"+filepath.Join(dir, "a.db")+"?layout="+layout, filepath.Join(dir, "bk")
			heads := written(t, src, 20)
			code, _, errs := varve("backup", src, backup, "--no-verify")
			require.Equal(t, cli.ExitOK, code, errs)
			code, _, errs = varve("restore", backup, "sqlite:"+filepath.Join(dir, "no.db"), "--at=20")
			require.Equal(t, cli.ExitError, code)
			require.Contains(t, errs, "the backup has blocks 0 to 19")
			code, out, errs := varve("restore", backup, "sqlite:"+filepath.Join(dir, "b.db"), "--at=12")
			if layout == "simple" {
				require.Equal(t, cli.ExitError, code)
				require.Contains(t, errs, "keeps no history")
			} else {
				require.Equal(t, cli.ExitOK, code, errs)
				require.Contains(t, out, "up to block 12, digest "+heads[12].Digest.String())
				code, out, errs = varve("check", "sqlite:"+filepath.Join(dir, "b.db"))
				require.Equal(t, cli.ExitOK, code, errs)
				require.Contains(t, out, "digests recomputed")
			}
			made := map[string]bool{"no.db": false, "b.db": layout != "simple"}
			for name, want := range made {
				left, err := filepath.Glob(filepath.Join(dir, name+"*"))
				require.NoError(t, err)
				require.Equal(t, want, len(left) > 0, "%v", left)
			}
		})
	}
}
