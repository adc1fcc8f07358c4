package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
)

// newMode is the mode of a new database: other users cannot read it.
const newMode = 0o600

// Make makes the file of a database when there is none. Fill makes an empty
// database, in a private directory. The file gets its name afterwards, because
// a process that is killed must not leave an empty file under that name: an
// empty file looks like a database that has lost its contents. Of several
// processes that make one at once the first does, and the others find it.
//
// Durable says that the file is to survive the loss of power before anything is in
// it. The process that makes the file syncs its name before it removes its
// directory. So where such a directory lies, whether its process still runs or was
// killed, the next process syncs the name as well.
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

// newSuffix follows the path of a database in the name of the directory in which it
// is made.
const newSuffix = ".new"

// create makes the file, unless another process is faster.
func create(path string, durable bool, fill func(path string) error) error {
	temp, err := filesync.TempDir(path+newSuffix, nil)
	if err != nil {
		return err
	}
	file := filepath.Join(temp.Path(), filepath.Base(path))
	if err = fill(file); err == nil {
		err = own(file, durable)
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
