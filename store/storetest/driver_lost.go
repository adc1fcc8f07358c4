package storetest

import (
	"bytes"
	"os"
	"path/filepath"
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
		t.Skip("this engine keeps nothing beside a database")
	}
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
	before := must(os.ReadFile(logOf(path)))(t)
	apply(12, 12)
	must(evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil))(t)
	beforeBlock := must(os.ReadFile(logOf(path)))(t)
	apply(13, 13)

	leave := func(change func(t *testing.T, path string)) func(t *testing.T) (string, string) {
		return func(t *testing.T) (string, string) {
			copied := filepath.Join(t.TempDir(), filepath.Base(path))
			for _, name := range filesOf(t, path) {
				if strings.HasSuffix(name, "-shm") {
					continue
				}
				text := must(os.ReadFile(name))(t)
				require.NoError(t, os.WriteFile(copied+strings.TrimPrefix(name, path), text, 0o600))
			}
			change(t, copied)
			return urlOf(t, rawURL, copied), copied
		}
	}
	sound := func(t *testing.T, head uint64) {
		rawURL, path := leave(func(*testing.T, string) {})(t)
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
	t.Run("nothing", func(t *testing.T) { sound(t, 13) })
	for name, change := range map[string]func(t *testing.T, path string){
		"log": func(t *testing.T, path string) { require.NoError(t, os.Remove(logOf(path))) },
		"start of log": func(t *testing.T, path string) {
			text := must(os.ReadFile(logOf(path)))(t)
			text[100] ^= 0xff
			require.NoError(t, os.WriteFile(logOf(path), text, 0o600))
		},
		"end of log":     func(t *testing.T, path string) { cutHalf(t, logOf(path)) },
		"last of either": func(t *testing.T, path string) { require.NoError(t, os.WriteFile(logOf(path), before, 0o600)) },
		"last block":     func(t *testing.T, path string) { require.NoError(t, os.WriteFile(logOf(path), beforeBlock, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			rawURL, path := leave(change)(t)
			log, _ := os.ReadFile(logOf(path)) // which may not exist
			for range 2 {                      // the first attempt may remove the log
				for _, readOnly := range []bool{true, false} {
					db, err := store.Open(t.Context(), rawURL, &store.Options{ReadOnly: readOnly})
					if err != nil { // the engine itself finds the damage of its log
						require.ErrorIs(t, err, store.ErrCorrupt)
						continue
					}
					refuses(t, store.ErrCorrupt)(db.Entities(t.Context(), nil))
					refuses(t, store.ErrCorrupt, "-durable")(db.Events(t.Context(), nil))
					require.Equal(t, store.Damaged, call1(t, db.Check, nil).Outcome)
					closeDB(t, db)
				}
			}
			if len(log) > 0 {
				require.True(t, bytes.Equal(log, must(os.ReadFile(logOf(path)))(t)), "who was refused has changed the log")
			}
			if name == "start of log" {
				return // engines mistake it for an empty log, or do not read it
			}
			require.NoError(t, os.Remove(path+"-durable"))
			db := openDB(t, rawURL)
			call1(t, db.Entities, nil)
			call1(t, db.Events, nil)
			closeDB(t, db)
		})
	}
	t.Run("what a rewind has taken", func(t *testing.T) {
		require.NoError(t, ents.Rewind(t.Context(), 5))
		sound(t, 5)
	})
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
				t.Skip("this engine keeps nothing beside a database")
			}
			if c.events {
				must(call1(t, db.Events, nil).Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
			} else {
				must(call1(t, db.Entities, nil).Apply(t.Context(), entity.Block{Number: 1}))(t)
			}
			copied := filepath.Join(t.TempDir(), filepath.Base(path))
			for _, name := range []string{path, path + "-durable"} { // without the log
				require.NoError(t, os.WriteFile(copied+strings.TrimPrefix(name, path), must(os.ReadFile(name))(t), 0o600))
			}
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

func cutHalf(t *testing.T, path string) {
	t.Helper()
	st := must(os.Stat(path))(t)
	require.NoError(t, os.Truncate(path, st.Size()/2))
}
