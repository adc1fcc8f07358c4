// Package filesync makes files durable and whole, and tells the room for them, where
// package os stops short.
package filesync

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir makes the entries of a directory durable: the names of new files, and that of
// one that was renamed. Where the file system does not offer that, as network
// shares do not, it does nothing: the files themselves are durable.
func Dir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Replace writes a file, whole or not at all.
func Replace(path string, text []byte, mode os.FileMode) error {
	return Write(path, mode, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}

// Write makes or replaces a file. It appears under its name when it is whole
// and durable; when write fails no file is left, and an old file stays. Of
// several writers at once each writes a separate file, and the last one stays.
// The mode is for a new file; a replaced file keeps its own. If the path is no
// regular file, such as a terminal or a pipe, it is written to.
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
	return publish(path, mode, write, os.Rename)
}

// Create is Write for a file that is new: when there is one of its name by then,
// it fails with fs.ErrExist.
func Create(path string, mode os.FileMode, write func(f *os.File) error) error {
	return publish(path, mode, write, Name)
}

func publish(path string, mode os.FileMode, write func(f *os.File) error, name func(from, to string) error) error {
	part, err := tempFile(path+".partial", mode)
	if err != nil {
		return err
	}
	if err = write(part.file); err == nil {
		err = part.file.Sync()
	}
	if err == nil {
		err = name(part.path, path)
	}
	if err = errors.Join(err, part.Remove()); err != nil {
		return err
	}
	return Dir(filepath.Dir(path))
}

// link is Name where a file cannot be renamed without replacing another. For a
// moment it has both names. A directory cannot have two.
func link(from, to string) error {
	if st, err := os.Lstat(from); err == nil && st.IsDir() {
		if _, err := os.Lstat(to); err == nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
		}
		return os.Rename(from, to)
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
