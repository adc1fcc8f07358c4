// Package filesync writes files durably and atomically, and reports free disk
// space, where package os is not enough.
package filesync

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir makes the entries of a directory durable: the names of new and renamed
// files. On file systems that do not support this, such as network shares, it
// does nothing; the files' contents are durable anyway.
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

// Replace writes a file atomically.
func Replace(path string, text []byte, mode os.FileMode) error {
	return Write(path, mode, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}

// Write creates or replaces a file. It appears under its name only when it is
// complete and durable; when write fails no file is left, and an old file
// stays. Concurrent writers write separate files, and the last one wins. The
// mode is for a new file; a replaced file keeps its mode. If the path is not a
// regular file, such as a terminal or a pipe, it is written directly.
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

// Create is Write for a new file: if a file with that name exists by the end,
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

// link is Name for systems where a rename would replace an existing file. For a
// moment the file has both names. It does not work for directories.
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
