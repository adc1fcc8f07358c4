package sqlitewal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/store/driver"
)

// magic opens every SQLite database file.
const magic = "SQLite format 3\x00"

// CheckFile refuses a path that cannot be opened, with an error that says more
// than SQLite's "unable to open database file".
func CheckFile(path string, readOnly bool) error {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return fmt.Errorf("open %q read-only: %w", path, driver.ErrNotExist)
	case errors.Is(err, fs.ErrNotExist):
		return checkDirectory(filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", driver.ErrReadOnly, err)
	case err != nil:
		return err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil // an empty file is an empty database
	case err != nil || string(head) != magic:
		return fmt.Errorf("open %q: %w: it does not begin as a SQLite file does", path, driver.ErrCorrupt)
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
