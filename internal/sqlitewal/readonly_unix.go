//go:build unix

package sqlitewal

import (
	"errors"

	"golang.org/x/sys/unix"
)

// OnReadOnly tells whether a file is on a read-only file system. There SQLite can
// make no WAL-index, and reads a database only when it is told that nobody can
// change it (immutable).
func OnReadOnly(path string) bool { return errors.Is(unix.Access(path, unix.W_OK), unix.EROFS) }

// canMake tells whether a file can be made in a directory, of which SQLite says only that it
// was unable to open the file.
func canMake(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
