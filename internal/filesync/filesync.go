// Package filesync makes files durable and whole, and tells the room for them, where
// package os stops short.
package filesync

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir makes the entries of a directory durable: the names of new files, and that of
// one that was renamed.
func Dir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace writes a file anew, whole or not at all.
func Replace(path string, text []byte, mode os.FileMode) error {
	return Write(path, mode, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}

// Write makes a file, or makes it anew, of what write gives it. It appears under its name
// when it is whole and durable; when that fails nothing is left, and what was there before
// stays. The mode is of a new file; one that is replaced keeps its own. What is no regular
// file, such as a terminal or a pipe, is written to.
func Write(path string, mode os.FileMode, write func(f *os.File) error) (err error) {
	switch st, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	default:
		mode = st.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	part := path + ".partial"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return err
	}
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("directory %q does not exist; make it first", filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return Dir(filepath.Dir(path))
}
