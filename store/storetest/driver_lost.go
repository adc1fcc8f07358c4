package storetest

import (
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

// runLost: a store that has lost its end after a process was killed is not taken for one
// that never had it, nor for a new one. The files of an open store are what such a process
// leaves.
func runLost(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: their files are its own affair")
	}
	rawURL := h.NewURL(t)
	path := filePath(t, rawURL)
	db := h.open(t, rawURL, nil)
	if _, ok := db.Engine().(driver.Keeper); !ok {
		t.Skip("this engine keeps nothing beside a database")
	}
	ents := must(db.Entities(t.Context(), nil))(t)
	evs := must(db.Events(t.Context(), nil))(t)
	apply := func(from, to uint64) {
		for n := from; n <= to; n++ {
			must(ents.Apply(t.Context(), entity.Block{Number: n}))(t)
		}
	}
	apply(1, 20)
	require.NoError(t, ents.Rewind(t.Context(), 9))
	apply(10, 11)
	must(evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
	before := must(os.ReadFile(logOf(path)))(t)
	apply(12, 12)
	must(evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil))(t)

	leave := func(change func(t *testing.T, path string)) func(t *testing.T) (string, string) {
		return func(t *testing.T) (string, string) {
			copied := filepath.Join(t.TempDir(), filepath.Base(path))
			for _, name := range besideOf(t, path) {
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
	t.Run("nothing", func(t *testing.T) {
		rawURL, path := leave(func(*testing.T, string) {})(t)
		for range 2 {
			db := must(store.Open(t.Context(), rawURL, nil))(t)
			report := must(db.Check(t.Context(), nil))(t)
			require.Equal(t, store.Sound, report.Outcome)
			require.EqualValues(t, 12, report.Head.Number)
			require.EqualValues(t, 2, report.EventHead)
			require.NoError(t, db.Close())
		}
		require.NoFileExists(t, path+"-durable")
	})
	for name, change := range map[string]func(t *testing.T, path string){
		"log":            func(t *testing.T, path string) { require.NoError(t, os.Remove(logOf(path))) },
		"end of log":     func(t *testing.T, path string) { cutHalf(t, logOf(path)) },
		"last of either": func(t *testing.T, path string) { require.NoError(t, os.WriteFile(logOf(path), before, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			rawURL, path := leave(change)(t)
			for range 2 { // also when the log is gone after the first time
				for _, readOnly := range []bool{true, false} {
					db := must(store.Open(t.Context(), rawURL, &store.Options{ReadOnly: readOnly}))(t)
					_, err := db.Entities(t.Context(), nil)
					require.ErrorIs(t, err, store.ErrCorrupt)
					_, err = db.Events(t.Context(), nil)
					require.ErrorIs(t, err, store.ErrCorrupt)
					require.ErrorContains(t, err, "-durable")
					require.Equal(t, store.Damaged, must(db.Check(t.Context(), nil))(t).Outcome)
					require.NoError(t, db.Close())
				}
			}
			require.NoError(t, os.Remove(path+"-durable"))
			db := must(store.Open(t.Context(), rawURL, nil))(t)
			must(db.Entities(t.Context(), nil))(t)
			must(db.Events(t.Context(), nil))(t)
			require.NoError(t, db.Close())
		})
	}
}

// logOf returns the log of a database, in which is what was committed last.
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
