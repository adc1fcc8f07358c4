package storetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// runLost: a store that has lost its last commits after a process was killed is
// refused. It must not be taken for an older or a new store. The test copies
// the files of an open store, because a killed process leaves the same files.
func runLost(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: their files are its own affair")
	}
	rawURL, path := h.newFile(t)
	db := h.open(t, rawURL, nil)
	if _, ok := db.Engine().(driver.Keeper); !ok {
		t.Skip("this engine keeps no record next to a database")
	}

	// Write blocks and events, and keep the log from before the last event and
	// from before the last block.
	ents := call1(t, db.Entities, nil)
	evs := call1(t, db.Events, nil)
	apply := func(from, to uint64) {
		for n := from; n <= to; n++ {
			call1(t, ents.Apply, entity.Block{Number: n})
		}
	}
	apply(1, 20)
	require.NoError(t, ents.Rewind(t.Context(), 9))
	apply(10, 11)
	must(evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
	beforeEvent := must(os.ReadFile(logOf(path)))(t)
	apply(12, 12)
	must(evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil))(t)
	beforeBlock := must(os.ReadFile(logOf(path)))(t)
	apply(13, 13)

	// The files that a killed process leaves are a sound store.
	kill := func(t *testing.T) (copiedURL, copied string) {
		names := slices.DeleteFunc(filesOf(t, path), func(name string) bool { return strings.HasSuffix(name, "-shm") })
		copied = copyFiles(t, path, names...)
		return urlOf(t, rawURL, copied), copied
	}
	requireSound := func(t *testing.T, head uint64) {
		rawURL, path := kill(t)
		for range 2 {
			db := openDB(t, rawURL)
			report := call1(t, db.Check, nil)
			require.Equal(t, store.Sound, report.Outcome, report.Err())
			require.EqualValues(t, head, report.Head.Number)
			require.EqualValues(t, 2, report.EventHead)
			closeDB(t, db)
		}
		require.NoFileExists(t, path+"-durable")
	}
	t.Run("nothing", func(t *testing.T) { requireSound(t, 13) })

	// With an older or a damaged log they are refused, and stay as they are.
	const firstFrame = "start of log"
	for name, lose := range map[string]func(t *testing.T, log string) error{
		"log": func(_ *testing.T, log string) error { return os.Remove(log) },
		firstFrame: func(t *testing.T, log string) error {
			text := must(os.ReadFile(log))(t)
			text[100] ^= 0xff
			return os.WriteFile(log, text, 0o600)
		},
		"end of log": func(t *testing.T, log string) error {
			return os.Truncate(log, must(os.Stat(log))(t).Size()/2)
		},
		"last of either": func(_ *testing.T, log string) error { return os.WriteFile(log, beforeEvent, 0o600) },
		"last block":     func(_ *testing.T, log string) error { return os.WriteFile(log, beforeBlock, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			rawURL, path := kill(t)
			require.NoError(t, lose(t, logOf(path)))
			log, _ := os.ReadFile(logOf(path)) // which may not exist
			for range 2 {                      // the first attempt may remove the log
				for _, readOnly := range []bool{true, false} {
					requireLost(t, rawURL, readOnly)
				}
			}
			if len(log) > 0 {
				kept := must(os.ReadFile(logOf(path)))(t)
				require.True(t, bytes.Equal(log, kept), "a process that was refused has changed the log")
			}
			if name == firstFrame {
				return // engines mistake it for an empty log, or do not read it
			}
			require.NoError(t, os.Remove(path+"-durable"))
			db := openDB(t, rawURL)
			call1(t, db.Entities, nil)
			call1(t, db.Events, nil)
			closeDB(t, db)
		})
	}

	t.Run("rewound blocks", func(t *testing.T) {
		require.NoError(t, ents.Rewind(t.Context(), 5))
		requireSound(t, 5)
	})
}

// requireLost checks that a store is refused because of lost commits: by the
// engine, which finds the damage of its log, or when its data are opened.
func requireLost(t *testing.T, rawURL string, readOnly bool) {
	t.Helper()
	db, err := store.Open(t.Context(), rawURL, &store.Options{ReadOnly: readOnly})
	if err != nil {
		require.ErrorIs(t, err, store.ErrCorrupt)
		return
	}
	refuses(t, store.ErrCorrupt)(db.Entities(t.Context(), nil))
	refuses(t, store.ErrCorrupt, "-durable")(db.Events(t.Context(), nil))
	require.Equal(t, store.Damaged, call1(t, db.Check, nil).Outcome)
	closeDB(t, db)
}

// copyFiles copies files of a database to another directory, and returns the
// database's path there.
func copyFiles(t *testing.T, path string, names ...string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), filepath.Base(path))
	for _, name := range names {
		require.NoError(t, os.WriteFile(copied+strings.TrimPrefix(name, path), must(os.ReadFile(name))(t), 0o600))
	}
	return copied
}

// runLostOther: opening the other kind of data (entities or events) detects the
// loss before it writes to the part of the file that is in the lost log.
func runLostOther(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: their files are its own affair")
	}
	entities := func(db *store.DB) error { return second(db.Entities(t.Context(), nil)) }
	events := func(db *store.DB) error { return second(db.Events(t.Context(), nil)) }
	restore := func(db *store.DB) error {
		var backup bytes.Buffer
		from := h.open(t, h.NewURL(t), nil)
		call1(t, from.Entities, nil)
		must(from.Backup(t.Context(), &backup, nil))(t)
		return second(db.Restore(t.Context(), &backup, nil))
	}
	repair := func(db *store.DB) error { return second(db.Repair(t.Context(), nil)) }
	for _, c := range []struct {
		name   string
		events bool // events are lost, otherwise blocks
		open   func(db *store.DB) error
	}{
		{"events of a store of entities", false, events}, {"entities of a store of events", true, entities},
		{"restore", false, restore}, {"repair", false, repair}, {"repair of events", true, repair},
	} {
		t.Run(c.name, func(t *testing.T) {
			rawURL, path := h.newFile(t)
			db := h.open(t, rawURL, nil)
			if _, ok := db.Engine().(driver.Keeper); !ok {
				t.Skip("this engine keeps no record next to a database")
			}
			if c.events {
				must(call1(t, db.Events, nil).Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
			} else {
				must(call1(t, db.Entities, nil).Apply(t.Context(), entity.Block{Number: 1}))(t)
			}
			copied := copyFiles(t, path, path, path+"-durable") // without the log
			lost := openDB(t, urlOf(t, rawURL, copied))
			require.ErrorIs(t, c.open(lost), store.ErrCorrupt)
			closeDB(t, lost)
			require.FileExists(t, copied+"-durable")
		})
	}
}

func second[T any](_ T, err error) error { return err }

// logOf returns the log of a database, which holds the last commits.
func logOf(path string) string {
	for _, end := range []string{"-wal", ".wal"} {
		if st, err := os.Stat(path + end); err == nil && st.Size() > 0 {
			return path + end
		}
	}
	return ""
}
