package pgembed

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store/driver"
)

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
		log != nil && wrote == "" && isFull(dir): // a full disk keeps no log either
		return fmt.Errorf("%w: %w", driver.ErrDiskFull, err)
	case errors.Is(err, syscall.EROFS), strings.Contains(wrote, "Read-only file system"):
		return fmt.Errorf("%w: %w", driver.ErrReadOnly, err)
	}
	return err
}

// isFull tells whether the file system of a directory has no free block.
func isFull(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Bavail == 0
}
