package sqlitewal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/store/driver"
)

// CheckFile refuses a path that cannot be opened, with an error that says more
// than SQLite's "unable to open database file". It does not open the file:
// closing any descriptor of it would drop the POSIX locks of another database
// that this process has open on it. Whether it is a database SQLite says itself.
func CheckFile(path string, readOnly bool) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return fmt.Errorf("open %q read-only: %w", path, driver.ErrNotExist)
	case errors.Is(err, fs.ErrNotExist):
		return checkDirectory(filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", driver.ErrReadOnly, err)
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fmt.Errorf("open %q: %w: it is not a regular file", path, driver.ErrCorrupt)
	case OnReadOnly(path) && !readOnly:
		return fmt.Errorf("open %q: %w: the file system is; open the database for reading only", path, driver.ErrReadOnly)
	case OnReadOnly(path) && hasLog(path):
		return fmt.Errorf("open %q: %w: the file system is, and the log beside the database must be written into it first; "+
			"copy both to where they can be written", path, driver.ErrReadOnly)
	}
	return nil
}

func hasLog(path string) bool {
	st, err := os.Stat(path + "-wal")
	return err == nil && st.Size() > 0
}

func checkDirectory(dir string) error {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("directory %q does not exist; make it first", dir)
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%q is not a directory", dir)
	}
	if err := canMake(dir); err != nil {
		return fmt.Errorf("%w: directory %q: %w", driver.ErrReadOnly, dir, err)
	}
	return nil
}
