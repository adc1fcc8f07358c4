//go:build unix

package duckdb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/varvedb/varve/store/driver"
)

// lock takes the lock that the engine takes too. The lock is the process's: it
// keeps other processes out and not the engine. On a file system without locks
// it does nothing, as the engine does there.
func lock(f *os.File) error {
	all := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &all)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w: another process has it open", driver.ErrLocked)
	}
	return nil
}
