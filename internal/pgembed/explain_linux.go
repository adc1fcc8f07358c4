package pgembed

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store/driver"
)

// minFree is the room, in bytes, below which a file system counts as full: the
// little that is left of one may hold a log line but no page of a database.
const minFree = 64 << 10

// explain adds the sentinel that fits why a start failed, found in the error or
// in what a program wrote.
func explain(dir string, err error) error {
	var log *logError
	wrote := ""
	if errors.As(err, &log) {
		wrote = log.text
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT),
		strings.Contains(wrote, "No space left on device"),
		log != nil && isFull(dir): // where the log itself may be cut
		return fmt.Errorf("%w: %w", driver.ErrDiskFull, err)
	case errors.Is(err, syscall.EROFS), strings.Contains(wrote, "Read-only file system"):
		return fmt.Errorf("%w: %w", driver.ErrReadOnly, err)
	}
	return err
}

// isFull tells whether the file system of a directory has no room left.
func isFull(dir string) bool {
	free, err := filesync.Free(dir)
	return err == nil && free < minFree
}
