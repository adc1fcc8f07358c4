package pgembed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/varvedb/varve/internal/filelease"
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
	return filelease.Wait(ctx, filepath.Join(dir, "lock"), 0o600)
}
