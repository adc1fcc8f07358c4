package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/store/driver"
)

// lockPoll is how often a lock that another process holds is tried.
const lockPoll = 50 * time.Millisecond

// lock takes the lock of a file, making it when it does not exist, and waits
// for it until ctx is done. Closing the file gives the lock back, and so does
// the end of the process.
func lock(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if f != nil || err != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %q: %w", path, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// tryLock takes the lock of a file, or returns nil when another has it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = filelease.Lock(f)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, driver.ErrLocked):
		return nil, f.Close()
	}
	return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), f.Close())
}
