package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runLeftovers: after Close, and after an Open that failed, no goroutine, file
// descriptor or process of an engine remains. Each case runs once before it is
// watched, because a library may set up something for the whole process.
func runLeftovers(t *testing.T, h Harness) {
	cases := map[string]func(t *testing.T, h Harness){
		"close":               leaveByClose,
		"close under readers": leaveUnderReaders,
		"cancelled open":      leaveByCancelledOpen,
		"refused open":        leaveByRefusedOpen,
		"second open":         leaveBySecondOpen,
		"not a database":      leaveByGarbage,
		"missing directory":   leaveByMissingDirectory,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Run("first", func(t *testing.T) { run(t, h) })
			before := takeStock()
			goroutines := goleak.IgnoreCurrent()
			t.Run("watched", func(t *testing.T) {
				for range 3 {
					run(t, h)
				}
			})
			require.NoError(t, goleak.Find(goroutines))
			before.requireNothingNew(t)
		})
	}
}

func leaveByClose(t *testing.T, h Harness) {
	db := openDB(t, h.NewURL(t))
	e := db.Engine()
	table := newTable(t, e, true, itemsTable("items"), itemRows(0, 100)...)
	tx := begin(t, e)
	insert(t, tx, table, itemRows(100, 110)...)
	require.NoError(t, tx.Rollback())
	requireItems(t, e, table, 100)
	if _, err := driver.Checkpoint(context.Background(), e, false); !errors.Is(err, driver.ErrUnsupported) {
		require.NoError(t, err)
	}
	stats := must(e.Stats(context.Background()))(t)
	closeDB(t, db)
	for _, pid := range stats.EnginePIDs {
		eventually(t, fmt.Sprintf("engine process %d has ended", pid), func() bool { return !processExists(pid) })
	}
}

func leaveUnderReaders(t *testing.T, h Harness) {
	db := openDB(t, h.NewURL(t))
	e := db.Engine()
	newTable(t, e, true, itemsTable("items"), itemRows(0, 100)...)
	for range 2 {
		r := must(e.Snapshot(context.Background()))(t)
		rows := must(r.Query(context.Background(), "SELECT id FROM items"))(t)
		require.True(t, rows.Next())
	}
	closeDB(t, db)
}

func leaveByCancelledOpen(t *testing.T, h Harness) {
	db, err := store.Open(cancelled(), h.NewURL(t), nil)
	if err == nil {
		closeDB(t, db)
	}
}

func leaveByRefusedOpen(t *testing.T, h Harness) {
	_, err := store.Open(context.Background(), h.NewURL(t), &store.Options{Params: map[string]string{"no_such_parameter": "1"}})
	require.Error(t, err)
}

func leaveBySecondOpen(t *testing.T, h Harness) {
	rawURL := h.NewURL(t)
	first := openDB(t, rawURL)
	if first.Engine().Capabilities().MultiProcess {
		second := must(store.Open(context.Background(), rawURL, nil))(t)
		closeDB(t, second)
	} else {
		refuseOpen(t, withParams(t, rawURL, "lock_timeout", "20ms"), nil, driver.ErrLocked, "")
	}
	inTx(t, first.Engine(), func(driver.Tx) {})
	closeDB(t, first)
}

func leaveByGarbage(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: there is no file to damage")
	}
	rawURL := h.NewURL(t)
	path, garbage := filePath(t, rawURL), bytes.Repeat([]byte("not a database\n"), 1000)
	require.NoError(t, os.WriteFile(path, garbage, 0o600))
	for _, readOnly := range []bool{false, true} {
		refuseOpen(t, rawURL, &store.Options{ReadOnly: readOnly}, driver.ErrCorrupt, "")
	}
	kept := must(os.ReadFile(path))(t)
	require.True(t, bytes.Equal(garbage, kept), "a file that is not a database is left alone")
}

func leaveByMissingDirectory(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: there is no directory of theirs")
	}
	rawURL := h.NewURL(t)
	u := must(url.Parse(rawURL))(t)
	u.Path = filepath.Join(filepath.Dir(filePath(t, rawURL)), "missing", "varve.db")
	u.Opaque = ""
	_, err := store.Open(context.Background(), u.String(), nil)
	require.Error(t, err)
	refuses(t, os.ErrNotExist)(os.Stat(filepath.Dir(u.Path)))
}

// filePath returns the path of a database that is a file.
func filePath(t testing.TB, rawURL string) string {
	t.Helper()
	return must(driver.FilePath(must(url.Parse(rawURL))(t)))(t)
}

// stock lists the targets of the process's open file descriptors. Without /proc
// it is empty.
type stock []string

func takeStock() (s stock) {
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			s = append(s, target)
		}
	}
	return s
}

func processExists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// requireNothingNew checks that the process has no more open files than before.
// It waits, because threads of a library may close files later.
func (s stock) requireNothingNew(t *testing.T) {
	t.Helper()
	var files []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if files = added(s, takeStock()); len(files) == 0 {
			return
		}
	}
	require.Empty(t, files, "open files")
}

// added returns the names that occur more often now than before. A replaced
// socket counts, because its name has another number.
func added(before, now []string) []string {
	rest := slices.Clone(before)
	var more []string
	for _, name := range now {
		if i := slices.Index(rest, name); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
			continue
		}
		more = append(more, name)
	}
	return more
}
