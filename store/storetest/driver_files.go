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

// runFiles: a URL names one file, only the owner may read it, and a file that
// is not a database is refused.
func runFiles(t *testing.T, h Harness) {
	t.Run("fragment", func(t *testing.T) {
		rawURL := h.NewURL(t)
		for _, wrong := range []string{rawURL + "#y", strings.Replace(rawURL, ":", ":#", 1)} {
			refuseOpen(t, wrong, nil, store.ErrInvalid, "%23")
		}
	})
	if h.Server {
		return // the other cases are of files
	}
	parts[Harness]{
		{"links", runLinks},
		{"hard links", runHardLinks},
		{"modes", runModes},
	}.run(t, h)
	t.Run("empty", func(t *testing.T) {
		rawURL, path := h.newFile(t)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		for _, readOnly := range []bool{false, true} {
			refuseOpen(t, rawURL, &store.Options{ReadOnly: readOnly}, driver.ErrCorrupt, "empty")
		}
		require.Equal(t, []string{path}, filesOf(t, path))
	})
	t.Run("log alone", func(t *testing.T) {
		rawURL, path := h.newFile(t)
		for _, end := range []string{"-wal", ".wal"} {
			require.NoError(t, os.WriteFile(path+end, []byte("log"), 0o600))
			refuseOpen(t, rawURL, nil, driver.ErrCorrupt, path+end)
			require.Equal(t, []string{path + end}, filesOf(t, path))
			require.NoError(t, os.Remove(path+end))
		}
	})
}

// filesOf lists a database file and the files whose names begin with its name.
func filesOf(t *testing.T, path string) []string {
	t.Helper()
	return must(filepath.Glob(path + "*"))(t)
}

// urlOf returns the URL of another path.
func urlOf(t *testing.T, rawURL, path string) string {
	t.Helper()
	u := must(url.Parse(rawURL))(t)
	u.Opaque, u.Path = "", path
	return u.String()
}

// runLinks: a database that is opened or created through symbolic links has one
// set of files and one lease.
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

		db := openDB(t, linked)
		table := newNumbers(t, db.Engine(), "numbers", 1, 10)
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
		closeDB(t, db)

		for _, u := range []string{rawURL, linked} {
			e := h.open(t, u, &store.Options{ReadOnly: true}).Engine()
			requireCount(t, e, table, 1)
			require.NoError(t, e.Close())
		}
	})
	t.Run("loop", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Symlink("b", dir+"/a"))
		require.NoError(t, os.Symlink("a", dir+"/b"))
		refuseOpen(t, urlOf(t, h.NewURL(t), dir+"/a"), nil, nil, "symbolic links")
	})
	t.Run("to no directory", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Symlink("missing/varve.db", dir+"/a"))
		refuseOpen(t, urlOf(t, h.NewURL(t), dir+"/a"), nil, nil, "make it first")
	})
}

// runHardLinks: a file with two names is refused, because it would have a
// different log under each name.
func runHardLinks(t *testing.T, h Harness) {
	rawURL, path := h.newFile(t)
	require.NoError(t, openDB(t, rawURL).Close())
	require.NoError(t, os.Link(path, path+"2"))
	for _, at := range []string{path, path + "2"} {
		for _, readOnly := range []bool{false, true} {
			refuseOpen(t, urlOf(t, rawURL, at), &store.Options{ReadOnly: readOnly}, driver.ErrUnsupported, "2 names")
		}
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, openDB(t, urlOf(t, rawURL, path+"2")).Close())
}

// runModes: only the owner can read a store's files, unless the owner has
// changed their mode.
func runModes(t *testing.T, h Harness) {
	rawURL, path := h.newFile(t)
	for _, mode := range []fs.FileMode{0o600, 0o660} {
		db := openDB(t, rawURL)
		evs := call1(t, db.Events, nil)
		must(evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
		lease := must(driver.TakeLease(t.Context(), db.Engine()))(t)
		for _, name := range filesOf(t, path) {
			st := must(os.Stat(name))(t)
			if mode == 0o600 {
				require.Equal(t, mode, st.Mode().Perm(), name)
			} else {
				require.Zero(t, st.Mode().Perm()&0o007, name)
			}
		}
		require.NoError(t, lease.Release())
		closeDB(t, db)
		require.NoError(t, os.Chmod(path, 0o660))
	}
}

// runMoved: an engine does not commit to a file that was moved or replaced.
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
			rawURL, path := h.newFile(t)
			db := openDB(t, rawURL)
			defer func() { _ = db.Close() }() // the error may be that the file is gone
			evs := call1(t, db.Events, nil)
			must(evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil))(t)
			ents := call1(t, db.Entities, nil)
			call1(t, ents.Apply, entity.Block{Number: 1})
			require.NoError(t, driver.Probe(t.Context(), db.Engine()))

			move(t, path)
			refuses(t, driver.ErrMoved)(evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil))
			refuses(t, driver.ErrMoved)(ents.Apply(t.Context(), entity.Block{Number: 2}))
			require.ErrorIs(t, driver.Probe(t.Context(), db.Engine()), driver.ErrMoved)
			if name != "directory" {
				return
			}
			// The engine works again when the directory is back.
			require.NoError(t, os.Rename(filepath.Dir(path)+"-aside", filepath.Dir(path)))
			require.NoError(t, driver.Probe(t.Context(), db.Engine()))
			must(evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil))(t)
			call1(t, ents.Apply, entity.Block{Number: 2})
		})
	}
	for _, end := range []string{"-wal", "-shm"} {
		t.Run("without "+end, func(t *testing.T) {
			rawURL, path := h.newFile(t)
			db := openDB(t, rawURL)
			defer db.Close()
			ents := call1(t, db.Entities, nil)
			if os.Remove(path+end) != nil {
				t.Skipf("this engine has no file %s", end)
			}
			refuses(t, driver.ErrMoved)(ents.Apply(t.Context(), entity.Block{Number: 1}))
			require.ErrorIs(t, driver.Probe(t.Context(), db.Engine()), driver.ErrMoved)
		})
	}
}
