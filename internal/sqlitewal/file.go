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
	}
	return nil
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
	return nil
}
