//go:build unix

package dbfile

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OnReadOnly reports whether a file is on a read-only file system. There SQLite
// can make no WAL-index, and reads a database only as an immutable one.
func OnReadOnly(path string) bool { return errors.Is(unix.Access(path, unix.W_OK), unix.EROFS) }

// MayWrite reports whether a file can be made in a directory, because an
// engine's error only says that it was unable to open the file.
func MayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// names is how many names a file has.
func names(st os.FileInfo) int {
	if system, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(system.Nlink)
	}
	return 1
}

// MayRead reports whether files can be read.
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
