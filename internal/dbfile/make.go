package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
)

// newMode is the mode of a new database; other users cannot read it.
const newMode = 0o600

// Make creates the file of a database if there is none. Fill makes an empty
// database in a private directory. The file is renamed afterwards, because a
// killed process must not leave an empty file under the final name: it would
// look like a database that has lost its contents. If several processes do this
// concurrently, the first one wins and the others use its file.
//
// With durable the file survives a power failure even before anything is
// written to it. The creating process syncs the file's name before it removes
// its private directory. So if such a directory exists, whether its process is
// running or was killed, the next process syncs the name as well.
func Make(path string, durable bool, fill func(path string) error) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = create(path, durable, fill)
	case err == nil:
		var unfinished bool
		if unfinished, err = filesync.Sweep(path + newSuffix); err == nil && unfinished && durable {
			err = filesync.Dir(filepath.Dir(path))
		}
	}
	if err != nil {
		return fmt.Errorf("make %q: %w", path, err)
	}
	return nil
}

// newSuffix is appended to the path of a database to name the directory in
// which it is made.
const newSuffix = ".new"

// create creates the file, unless another process has done so first.
func create(path string, durable bool, fill func(path string) error) error {
	temp, err := filesync.TempDir(path+newSuffix, nil)
	if err != nil {
		return err
	}
	file := filepath.Join(temp.Path(), filepath.Base(path))
	if err = fill(file); err == nil {
		err = restrict(file, durable)
	}
	if err == nil {
		err = filesync.Name(file, path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil && durable {
		err = filesync.Dir(filepath.Dir(path))
	}
	return errors.Join(err, temp.Remove())
}

// restrict restricts the permissions of a new file, and makes it durable.
func restrict(path string, durable bool) error {
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
