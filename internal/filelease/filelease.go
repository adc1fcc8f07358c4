// Package filelease has locks on files, which the system drops with the process
// that holds them, and the lease of a database file: such a lock on a file next
// to the database.
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

// suffix of the file, after the path of the database.
const suffix = "-lease"

// lease is a file that is locked.
type lease struct{ file *os.File }

// Take implements driver.Leaser for a database, which exists. Its path has no symbolic
// links, so that everybody names the lease alike. Whoever may use the database may use the
// lease, unless it is open for reading only.
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
			if err := ours(f); err != nil {
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

// Open opens a file, which it makes if need be, with its lock; driver.ErrLocked when
// another has that. Closing the file gives the lock back, and so does the end of the process.
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

// poll is how often a lock that another has is tried.
const poll = 50 * time.Millisecond

// Wait is Open that waits for the lock until ctx is done.
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

// current reports whether a path still names a file.
func current(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// ours refuses a file that is no lease: a lease is empty, or has the number of
// a process. Any other file is a user's, which taking the lease would remove.
func ours(f *os.File) error {
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

// sign writes who has the lease, for people.
func (l lease) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return errors.Join(fmt.Errorf("lease: %w", err), l.file.Close())
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return errors.Join(fmt.Errorf("lease: %w", err), l.file.Close())
	}
	return nil
}

// Held implements driver.Lease: the lock cannot be lost.
func (l lease) Held(context.Context) error { return nil }

// Release implements driver.Lease. The file is removed while it is locked, so
// that no process locks a file that is about to go and thinks it has the lease.
func (l lease) Release() error {
	if err := errors.Join(os.Remove(l.file.Name()), l.file.Close()); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	return nil
}
