package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
)

// newMode is that of a new database: nobody else reads what a store holds.
const newMode = 0o600

// Make makes the file of a database when there is none. Fill makes one with what an empty
// database has, under another name. It gets its own afterwards, so that a process which is
// killed leaves none that is empty: such a file has lost what was in it. Durable says that
// the file is to survive the loss of power before anything is in it.
//
// Of several that make one at once the first does, and the others find it.
func Make(path string, durable bool, fill func(path string) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := fmt.Sprintf("%s.new-%016x", path, rand.Uint64())
	err := fill(temp)
	if err == nil {
		err = own(temp, durable)
	}
	if err == nil {
		err = name(temp, path)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(temp))
	} else if durable {
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

// link is name where a file cannot be renamed without replacing another. For a moment it has
// both names.
func link(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
