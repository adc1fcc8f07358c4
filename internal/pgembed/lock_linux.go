package pgembed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store/driver"
)

// lockPatience is how long a lock may stay that nobody will keep: a child that a
// killed process was just starting has it until it runs its own program.
const lockPatience = time.Second

// lockDir takes the lock of a server's directory. The lock goes with the file, and
// so with the process; the file itself stays, because removing it would let two
// processes hold two locks.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	locked := fmt.Errorf("another process has this server started: %w", driver.ErrLocked)
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience, locked)
	defer cancel()
	return lockWait(ctx, filepath.Join(dir, "lock"), 0o600)
}

// lockWait takes the lock of a file, making it when it does not exist, and
// waits for it until ctx is done.
func lockWait(ctx context.Context, path string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, mode)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(5 * pollEvery)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for %q: %w", path, context.Cause(ctx)), f.Close())
		case <-tick.C:
		}
	}
}
