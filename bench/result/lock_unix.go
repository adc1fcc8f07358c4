//go:build unix

package result

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits for the lock of a file and returns how to give it back. The
// lock is held for one write, so it is not waited for long, and the end of a
// process gives it back.
func lockFile(f *os.File) (unlock func() error, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %q: %w", f.Name(), err)
	}
	return func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }, nil
}
