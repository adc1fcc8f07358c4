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

// lock takes the lock that the engine takes too, which is the process's: it keeps
// other processes out and not the engine. Without locks in the file system it does
// what the engine does there, nothing.
func lock(f *os.File) error {
	all := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &all)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w: another process has it open", driver.ErrLocked)
	}
	return nil
}
