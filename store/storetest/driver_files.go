package storetest

import (
	"io/fs"
	"net/url"
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

// runFiles: which file a URL names, that nobody else reads it, and what is refused in its
// place.
func runFiles(t *testing.T, h Harness) {
	t.Run("fragment", func(t *testing.T) {
		rawURL := h.NewURL(t)
		for _, wrong := range []string{rawURL + "#y", strings.Replace(rawURL, ":", ":#", 1)} {
			_, err := store.Open(t.Context(), wrong, nil)
			require.ErrorContains(t, err, "%23")
			require.ErrorIs(t, err, store.ErrInvalid)
		}
	})
	if h.Server {
		return // what follows is of files
	}
	t.Run("links", func(t *testing.T) { runLinks(t, h) })
	t.Run("hard links", func(t *testing.T) { runHardLinks(t, h) })
	t.Run("modes", func(t *testing.T) { runModes(t, h) })
	t.Run("empty", func(t *testing.T) {
		rawURL := h.NewURL(t)
		path := filePath(t, rawURL)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		for _, readOnly := range []bool{false, true} {
			_, err := store.Open(t.Context(), rawURL, &store.Options{ReadOnly: readOnly})
			require.ErrorIs(t, err, driver.ErrCorrupt)
			require.ErrorContains(t, err, "empty")
		}
		require.Equal(t, []string{path}, besideOf(t, path))
	})
	t.Run("log alone", func(t *testing.T) {
		rawURL := h.NewURL(t)
		path := filePath(t, rawURL)
		for _, end := range []string{"-wal", ".wal"} {
			require.NoError(t, os.WriteFile(path+end, []byte("log"), 0o600))
			_, err := store.Open(t.Context(), rawURL, nil)
			require.ErrorIs(t, err, driver.ErrCorrupt)
			require.ErrorContains(t, err, path+end)
			require.Equal(t, []string{path + end}, besideOf(t, path))
			require.NoError(t, os.Remove(path+end))
		}
	})
}

// besideOf lists a database file and what is beside it.
func besideOf(t *testing.T, path string) []string {
	t.Helper()
	return must(filepath.Glob(path + "*"))(t)
}

// urlOf is the URL of another path.
func urlOf(t *testing.T, rawURL, path string) string {
	t.Helper()
	u := must(url.Parse(rawURL))(t)
	u.Opaque, u.Path = "", path
	return u.String()
}

// runLinks: a database has one set of files and one lease by whatever symbolic link it is
// opened, also when it is made by it.
func runLinks(t *testing.T, h Harness) {
	t.Run("chain", func(t *testing.T) {
		rawURL := h.NewURL(t)
		target := filePath(t, rawURL)
		target = filepath.Join(must(filepath.EvalSymlinks(filepath.Dir(target)))(t), filepath.Base(target))
		dir := t.TempDir()
		require.NoError(t, os.Symlink(filepath.Dir(target), dir+"/a"))
		require.NoError(t, os.Symlink("a/"+filepath.Base(target), dir+"/b"))
		require.NoError(t, os.Symlink("b", dir+"/link"))
		linked := urlOf(t, rawURL, dir+"/link")
		before := must(os.ReadDir(dir))(t)

		db := must(store.Open(t.Context(), linked, nil))(t)
		table := newTable(t, db.Engine(), true, numbersTable("numbers"))
		inTx(t, db.Engine(), func(tx driver.Tx) { insert(t, tx, table, int64(1), int64(10)) })
		lease, err := driver.TakeLease(t.Context(), db.Engine())
		require.NoError(t, err)
		if db.Engine().Capabilities().MultiProcess {
			_, err = driver.TakeLease(t.Context(), h.open(t, rawURL, nil).Engine())
		} else {
			_, err = store.Open(t.Context(), withParams(t, rawURL, "lock_timeout", "20ms"), nil)
		}
		require.ErrorIs(t, err, driver.ErrLocked)
		after := must(os.ReadDir(dir))(t)
		require.Equal(t, len(before), len(after), "nothing is beside the link")
		require.NoError(t, lease.Release())
		require.NoError(t, db.Close())

		for _, u := range []string{rawURL, linked} {
			e := h.open(t, u, &store.Options{ReadOnly: true}).Engine()
			inView(t, e, func(q driver.Querier) { require.EqualValues(t, 1, countRows(t, q, table)) })
			require.NoError(t, e.Close())
		}
	})
	t.Run("loop", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Symlink("b", dir+"/a"))
		require.NoError(t, os.Symlink("a", dir+"/b"))
		_, err := store.Open(t.Context(), urlOf(t, h.NewURL(t), dir+"/a"), nil)
		require.ErrorContains(t, err, "symbolic links")
	})
	t.Run("to no directory", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Symlink("missing/varve.db", dir+"/a"))
		_, err := store.Open(t.Context(), urlOf(t, h.NewURL(t), dir+"/a"), nil)
		require.ErrorContains(t, err, "make it first")
	})
}

// runHardLinks: by each of its names a file would have a log of its own.
func runHardLinks(t *testing.T, h Harness) {
	rawURL := h.NewURL(t)
	path := filePath(t, rawURL)
	require.NoError(t, must(store.Open(t.Context(), rawURL, nil))(t).Close())
	require.NoError(t, os.Link(path, path+"2"))
	for _, at := range []string{path, path + "2"} {
		for _, readOnly := range []bool{false, true} {
			_, err := store.Open(t.Context(), urlOf(t, rawURL, at), &store.Options{ReadOnly: readOnly})
			require.ErrorIs(t, err, driver.ErrUnsupported)
			require.ErrorContains(t, err, "2 names")
		}
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, must(store.Open(t.Context(), urlOf(t, rawURL, path+"2"), nil))(t).Close())
}

// runModes: nobody else reads what a store holds, unless the owner has let him.
func runModes(t *testing.T, h Harness) {
	rawURL := h.NewURL(t)
	path := filePath(t, rawURL)
	for _, mode := range []fs.FileMode{0o600, 0o660} {
		db := must(store.Open(t.Context(), rawURL, nil))(t)
		evs := must(db.Events(t.Context(), nil))(t)
		must(evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
		lease := must(driver.TakeLease(t.Context(), db.Engine()))(t)
		for _, name := range besideOf(t, path) {
			st := must(os.Stat(name))(t)
			if mode == 0o600 {
				require.Equal(t, mode, st.Mode().Perm(), name)
			} else {
				require.Zero(t, st.Mode().Perm()&0o007, name)
			}
		}
		require.NoError(t, lease.Release())
		require.NoError(t, db.Close())
		require.NoError(t, os.Chmod(path, 0o660))
	}
}

// runMoved: nothing is committed to a file that nobody would find.
func runMoved(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: their files are its own affair")
	}
	cases := map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"directory": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-aside"))
		},
		"replaced": func(t *testing.T, path string) {
			text := must(os.ReadFile(path))(t)
			require.NoError(t, os.WriteFile(path+"-new", text, 0o600))
			require.NoError(t, os.Rename(path+"-new", path))
		},
	}
	for name, move := range cases {
		t.Run(name, func(t *testing.T) {
			rawURL := h.NewURL(t)
			path := filePath(t, rawURL)
			db := must(store.Open(t.Context(), rawURL, nil))(t)
			defer func() { _ = db.Close() }() // which may say that the file is gone
			evs := must(db.Events(t.Context(), nil))(t)
			must(evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
			ents := must(db.Entities(t.Context(), nil))(t)
			must(ents.Apply(t.Context(), entity.Block{Number: 1}))(t)
			require.NoError(t, driver.Probe(t.Context(), db.Engine()))

			move(t, path)
			_, err := evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil)
			require.ErrorIs(t, err, driver.ErrMoved)
			_, err = ents.Apply(t.Context(), entity.Block{Number: 2})
			require.ErrorIs(t, err, driver.ErrMoved)
			require.ErrorIs(t, driver.Probe(t.Context(), db.Engine()), driver.ErrMoved)
			if name != "directory" {
				return
			}
			// A moment in which nothing could be looked at ends nothing for good.
			require.NoError(t, os.Rename(filepath.Dir(path)+"-aside", filepath.Dir(path)))
			require.NoError(t, driver.Probe(t.Context(), db.Engine()))
			must(evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil))(t)
			must(ents.Apply(t.Context(), entity.Block{Number: 2}))(t)
		})
	}
	for _, end := range []string{"-wal", "-shm"} {
		t.Run("without "+end, func(t *testing.T) {
			rawURL := h.NewURL(t)
			path := filePath(t, rawURL)
			db := must(store.Open(t.Context(), rawURL, nil))(t)
			defer db.Close()
			ents := must(db.Entities(t.Context(), nil))(t)
			if os.Remove(path+end) != nil {
				t.Skipf("this engine has no file %s", end)
			}
			_, err := ents.Apply(t.Context(), entity.Block{Number: 1})
			require.ErrorIs(t, err, driver.ErrMoved)
			require.ErrorIs(t, driver.Probe(t.Context(), db.Engine()), driver.ErrMoved)
		})
	}
}
