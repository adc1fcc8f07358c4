package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/rowfile"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// TestRestoreCounts: a backup is refused when its rows contradict what its head
// says of them, and the database stays empty.
func TestRestoreCounts(t *testing.T) {
	open := func() *store.DB {
		db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	db := open()
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Apply(t.Context(), entity.Block{Number: 1, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{1}, BTL: 5}}})
	require.NoError(t, err)
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	_, err = evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
	require.NoError(t, err)
	var backup bytes.Buffer
	whole, err := db.Backup(t.Context(), &backup, nil)
	require.NoError(t, err)

	restored := open()
	for name, change := range map[string]func(says *store.BackupInfo){
		"the last block": func(says *store.BackupInfo) { says.Head.Number++ },
		"blocks":         func(says *store.BackupInfo) { says.Blocks++ },
		"the horizon":    func(says *store.BackupInfo) { says.Horizon++ },
		"events":         func(says *store.BackupInfo) { says.EventHead++ },
	} {
		t.Run(name, func(t *testing.T) {
			says := whole
			change(&says)
			_, err := restored.Restore(t.Context(), withHead(t, backup.Bytes(), says), nil)
			require.ErrorIs(t, err, store.ErrCorrupt)
		})
	}
	got, err := restored.Restore(t.Context(), withHead(t, backup.Bytes(), whole), nil)
	require.NoError(t, err)
	require.Equal(t, whole, got)
}

// withHead returns a backup with the rows of another one and a given head.
func withHead(t *testing.T, backup []byte, head store.BackupInfo) io.Reader {
	t.Helper()
	in, err := rowfile.NewReader(bytes.NewReader(backup))
	require.NoError(t, err)
	defer in.Close()
	text, err := json.Marshal(head)
	require.NoError(t, err)
	var file bytes.Buffer
	out, err := rowfile.NewWriter(&file, text)
	require.NoError(t, err)
	var last *driver.Table
	for {
		table, row, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if table != last {
			require.NoError(t, out.Table(table))
			last = table
		}
		for i, v := range row {
			switch v := v.(type) {
			case int64:
				row[i] = &v
			case uint64:
				row[i] = &v
			case string:
				text := []byte(v)
				row[i] = &text
			case []byte:
				row[i] = &v
			}
		}
		require.NoError(t, out.Row(row))
	}
	require.NoError(t, out.Close())
	return &file
}
