package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
)

// newMode is that of a new database: nobody else reads what a store holds.
const newMode = 0o600

// Make makes the file of a database when there is none. Fill makes one with what an empty
// database has, in a directory of this run. It gets its name afterwards, so that a process
// which is killed leaves none that is empty: such a file has lost what was in it. Durable says that
// the file is to survive the loss of power before anything is in it.
//
// Of several that make one at once the first does, and the others find it.
func Make(path string, durable bool, fill func(path string) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp, err := filesync.TempDir(path+".new", nil)
	if err != nil {
		return fmt.Errorf("make %q: %w", path, err)
	}
	file := filepath.Join(temp.Path(), filepath.Base(path))
	if err = fill(file); err == nil {
		err = own(file, durable)
	}
	if err == nil {
		err = filesync.Name(file, path)
	}
	if err = errors.Join(err, temp.Remove()); err == nil && durable {
		err = filesync.Dir(filepath.Dir(path))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make %q: %w", path, err)
	}
	return nil
}

// own takes a new file away from others, and makes it durable.
func own(path string, durable bool) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil {
		err = f.Chmod(st.Mode().Perm() & newMode)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
