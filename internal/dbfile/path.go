// Package dbfile handles the file of a database: which file a path names, how
// it is created, and whether it still exists.
package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/varvedb/varve/store/driver"
)

// maxLinks bounds a chain of symbolic links to a file that does not exist yet,
// as in Linux.
const maxLinks = 40

// Resolve returns the absolute path of a database without symbolic links,
// whether it exists or not. Engines and leases derive the names of further
// files from it, so all processes must use the same name, whichever link they
// open.
func Resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		path = wd + string(filepath.Separator) + path // not cleaned: the part before ".." may be a link
	}
	name := path
	for range maxLinks {
		resolved, err := filepath.EvalSymlinks(path)
		if err == nil {
			return resolved, nil
		}
		dir, base := filepath.Split(path)
		dir, broken := filepath.EvalSymlinks(dir)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return "", driver.Of(driver.ErrReadOnly, err)
		case errors.Is(broken, fs.ErrNotExist):
			return "", fmt.Errorf("directory %q does not exist; make it first", filepath.Dir(path))
		case broken != nil:
			return "", broken
		}
		at := filepath.Join(dir, base)
		target, err := os.Readlink(at)
		if err != nil { // it is no link: the file is to be made
			return at, nil
		}
		if path = target; !filepath.IsAbs(target) {
			path = dir + string(filepath.Separator) + target
		}
	}
	return "", fmt.Errorf("%q: %w: its symbolic links lead to each other; remove them", name, syscall.ELOOP)
}

// Check refuses a file that cannot be a database, and one whose further files
// cannot be found by its name. It does not open the file, because closing it
// would drop this process's locks on it. The engine checks the contents.
func Check(path string, readOnly bool) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return fmt.Errorf("%w: %q", driver.ErrNotExist, path)
	case errors.Is(err, fs.ErrNotExist):
		return checkNew(path)
	case errors.Is(err, fs.ErrPermission):
		return driver.Of(driver.ErrReadOnly, err)
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return driver.Of(driver.ErrCorrupt, fmt.Errorf("%q is a directory or a device; a store of this engine is a file", path))
	case st.Size() == 0:
		return driver.Of(driver.ErrCorrupt, fmt.Errorf("%q is empty; if it was a store, restore a backup; to make a store there, remove the file first", path))
	case OnReadOnly(path) && !readOnly:
		return driver.Of(driver.ErrReadOnly, fmt.Errorf("%q is on a read-only file system; to read it, add read_only=true to the URL", path))
	case OnReadOnly(path):
		return nil
	}
	if n := names(st); n > 1 {
		return driver.Of(driver.ErrUnsupported, fmt.Errorf("%q has %d names (hard links), and each would have a log of its own; remove the others, or open a copy of the file",
			path, n))
	}
	return nil
}

// checkNew refuses a place where no database can be created. It also refuses if
// a log without its database is there, because the engine would combine the log
// with the new file.
func checkNew(path string) error {
	for _, end := range []string{"-wal", ".wal", "-journal"} {
		if st, err := os.Lstat(path + end); err == nil && st.Size() > 0 {
			if _, err := os.Lstat(path); err == nil {
				return Check(path, false) // another process has made it meanwhile
			}
			return driver.Of(driver.ErrCorrupt, fmt.Errorf("%q is gone and its log %q is still there; put the file back or restore a backup, or remove the log to make a new store",
				path, path+end))
		}
	}
	if err := CheckIndex(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("directory %q does not exist; make it first", dir)
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%q is not a directory", dir)
	}
	if err := MayWrite(dir); err != nil {
		return driver.Of(driver.ErrReadOnly, fmt.Errorf("directory %q cannot be written: %w", dir, err))
	}
	return nil
}

// CheckIndex refuses a file that has the name of SQLite's WAL index but is not
// one, because SQLite overwrites it and removes it at the end. The size
// decides: an index has whole pages, or 3 bytes while it is being created. The
// file is not opened, because closing it would drop this process's locks.
func CheckIndex(path string) error {
	const begun, page = 3, 4096
	st, err := os.Lstat(path + "-shm")
	if err != nil || st.Mode().IsRegular() && (st.Size() <= begun || st.Size()%page == 0) {
		return nil
	}
	return driver.Of(driver.ErrUnsupported, fmt.Errorf("%q is not SQLite's, which would overwrite it; give that file or the store another name", path+"-shm"))
}

// Mode returns the mode for a database's further files: the same users may use
// them.
func Mode(path string) os.FileMode {
	st, err := os.Stat(path)
	if err != nil {
		return newMode
	}
	return st.Mode().Perm()
}
