// Package filelease has file locks, which the system releases when the process
// ends, and the lease of a database file: such a lock on a file next to the
// database.
package filelease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// suffix is appended to the path of the database.
const suffix = "-lease"

// lease is a file that is locked.
type lease struct{ file *os.File }

// Take implements driver.Leaser for an existing database. The path has no
// symbolic links, so that all processes use the same lease file. Whoever may
// write the database may take the lease.
func Take(path string, readOnly bool) (driver.Lease, error) {
	if readOnly {
		return nil, fmt.Errorf("lease: %w", driver.ErrReadOnly)
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	path += suffix
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, st.Mode().Perm()&0o666)
		if err != nil {
			return nil, fmt.Errorf("lease: %w", err)
		}
		if err := Lock(f); err != nil {
			owner := make([]byte, 20)
			n, _ := f.ReadAt(owner, 0) // it helps to find it, no more
			return nil, errors.Join(fmt.Errorf("%w: process %s has the lease, %s", err, bytes.TrimSpace(owner[:n]), path), f.Close())
		}
		if current(f, path) {
			if err := checkLeaseFile(f); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			l := lease{f}
			return l, l.sign()
		}
		if err := f.Close(); err != nil { // the last owner removed it meanwhile
			return nil, fmt.Errorf("lease: %w", err)
		}
	}
}

// Open opens or creates a file and locks it. It fails with driver.ErrLocked
// when another process has the lock. Closing the file, or the end of the
// process, releases the lock.
func Open(path string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, mode)
	if err != nil {
		return nil, err
	}
	if err := Lock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), f.Close())
	}
	return f, nil
}

// poll is the interval at which Wait tries a lock.
const poll = 50 * time.Millisecond

// Wait is Open, but waits for the lock until ctx is done.
func Wait(ctx context.Context, path string, mode os.FileMode) (*os.File, error) {
	for {
		f, err := Open(path, mode)
		if !errors.Is(err, driver.ErrLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %q: %w", path, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

// current reports whether a path still refers to an open file.
func current(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// checkLeaseFile refuses a file that is not a lease: a lease file is empty or has a
// process number. Any other file is a user's, and taking the lease would remove
// it.
func checkLeaseFile(f *os.File) error {
	text := make([]byte, 21)
	n, err := f.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("lease: %w", err)
	}
	if _, err := strconv.ParseUint(string(bytes.TrimSpace(text[:n])), 10, 64); n > 0 && err != nil {
		return fmt.Errorf("lease: %q is not a file of Varve's; give it another name", f.Name())
	}
	return nil
}

// sign writes into the file which process has the lease, for people.
func (l lease) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return errors.Join(fmt.Errorf("lease: %w", err), l.file.Close())
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return errors.Join(fmt.Errorf("lease: %w", err), l.file.Close())
	}
	return nil
}

// Held implements driver.Lease. A file lock cannot be lost.
func (l lease) Held(context.Context) error { return nil }

// Release implements driver.Lease. The file is removed while it is locked, so
// that no other process can lock a file that is about to be removed.
func (l lease) Release() error {
	if err := errors.Join(os.Remove(l.file.Name()), l.file.Close()); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	return nil
}
