//go:build unix

package filelease

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store/driver"
)

// Lock takes a lock that belongs to the open file and not, as fcntl's do, to the
// process: two engines of one process are kept apart as well.
func Lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return driver.ErrLocked
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: locks on this file system: %w", driver.ErrUnsupported, err)
	}
	return err
}
