package filesync

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/store/driver"
)

// Temp is a file or directory that this run has made under a unique name. It
// identifies its file by device and inode, so that a user's file under the same
// name is not removed.
//
// The run holds a lock on it. The next run with the same stem removes those
// whose lock is free, because their runs were killed.
type Temp struct {
	path string
	file *os.File // open for its lock; for a directory only for that
	is   os.FileInfo
}

// nameBytes is the length of the random part of a name, written in hex after
// the stem and a dash.
const nameBytes = 8

// TempDir makes a directory. For each directory of a killed run, forget, unless
// nil, releases other resources before the directory is removed.
func TempDir(stem string, forget func(path string) error) (*Temp, error) {
	if _, err := sweep(stem, true, forget); err != nil {
		return nil, fmt.Errorf("remove what a run has left that was killed: %w", err)
	}
	return newTemp(stem, func(path string) (*os.File, error) {
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, err
		}
		return os.Open(path)
	})
}

// tempFile makes a file.
func tempFile(stem string, mode os.FileMode) (*Temp, error) {
	_, _ = sweep(stem, false, nil) // a failure harms no run
	return newTemp(stem, func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	})
}

// Sweep removes the directories of killed runs. Found reports whether any
// directory existed, of a killed run or not.
func Sweep(stem string) (found bool, err error) { return sweep(stem, true, nil) }

func newTemp(stem string, create func(path string) (*os.File, error)) (*Temp, error) {
	for {
		path := fmt.Sprintf("%s-%016x", stem, rand.Uint64())
		f, err := create(path)
		if errors.Is(err, fs.ErrNotExist) {
			if _, gone := os.Stat(filepath.Dir(path)); gone != nil {
				return nil, fmt.Errorf("directory %q does not exist; make it first", filepath.Dir(path))
			}
			continue // another run has taken it for a remain and removed it
		}
		if err != nil {
			return nil, err
		}
		s := &Temp{path: path, file: f}
		if s.is, err = f.Stat(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// Another run may lock it first and remove it as left over; then this
		// run tries another name. Where locks are not supported, no run removes
		// another's files.
		locked := filelease.Lock(f)
		if errors.Is(locked, driver.ErrLocked) || locked == nil && !s.sameFile() {
			_ = f.Close()
			continue
		}
		return s, nil
	}
}

// sweep removes the files of killed runs. It skips files that it cannot lock,
// and names that are not a Temp's.
func sweep(stem string, dirs bool, forget func(path string) error) (found bool, err error) {
	entries, err := os.ReadDir(filepath.Dir(stem))
	if err != nil {
		return false, nil // whoever makes something there says why
	}
	var errs []error
	for _, entry := range entries {
		if entry.IsDir() != dirs || !IsTemp(stem, entry.Name()) || !dirs && !entry.Type().IsRegular() {
			continue
		}
		found = true
		path := filepath.Join(filepath.Dir(stem), entry.Name())
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		left := &Temp{path: path, file: f}
		if left.is, err = f.Stat(); err == nil && filelease.Lock(f) == nil {
			if forget != nil {
				err = forget(path)
			}
			errs = append(errs, errors.Join(err, left.remove()))
		}
		_ = f.Close()
	}
	return found, errors.Join(errs...)
}

// IsTemp reports whether a name in the directory of a stem is a temporary one.
func IsTemp(stem, name string) bool {
	end, ok := strings.CutPrefix(name, filepath.Base(stem)+"-")
	random, err := hex.DecodeString(end)
	return ok && err == nil && len(random) == nameBytes
}

// Path is the file's name.
func (s *Temp) Path() string { return s.path }

// Lock is the locked file. A process that inherits it holds the lock until it
// ends too.
func (s *Temp) Lock() *os.File { return s.file }

// sameFile reports whether the name still refers to the same file.
func (s *Temp) sameFile() bool {
	is, err := os.Lstat(s.path)
	return err == nil && os.SameFile(s.is, is)
}

func (s *Temp) remove() error {
	if !s.sameFile() {
		return nil
	}
	return os.RemoveAll(s.path)
}

// Remove removes the file or directory, unless it was renamed, and releases the
// lock.
func (s *Temp) Remove() error { return errors.Join(s.remove(), s.file.Close()) }
