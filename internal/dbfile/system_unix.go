//go:build unix

package dbfile

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OnReadOnly reports whether a file is on a read-only file system. There SQLite
// cannot create a WAL index, and reads only a database that is opened as
// immutable.
func OnReadOnly(path string) bool { return errors.Is(unix.Access(path, unix.W_OK), unix.EROFS) }

// MayWrite returns an error if no file can be created in a directory, because
// an engine's error only says that it was unable to open the file.
func MayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// names returns how many names (hard links) a file has.
func names(st os.FileInfo) int {
	if system, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(system.Nlink)
	}
	return 1
}

// MayRead returns an error if a file cannot be read.
func MayRead(paths ...string) error {
	for _, path := range paths {
		if err := unix.Access(path, unix.R_OK); err != nil {
			return err
		}
	}
	return nil
}

// OwnLike gives a new file or directory to the owner of another.
func OwnLike(path, like string) error {
	st, err := os.Stat(like)
	if err != nil {
		return err
	}
	if system, ok := st.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return os.Lchown(path, int(system.Uid), int(system.Gid))
	}
	return nil
}
