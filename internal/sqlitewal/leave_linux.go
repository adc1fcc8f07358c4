package sqlitewal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The bytes of a database file on which its users have a shared lock, and on
// which a process that removes the log takes an exclusive one
// (https://www.sqlite.org/src/file/src/os.h, SHARED_FIRST).
const (
	sharedFirst = 1<<30 + 2
	sharedSize  = 510
)

// keepLog keeps the log in place while this process closes the database. It
// takes a lock on the file, so that SQLite assumes that another process reads
// the database. The lock belongs to the open file and not to the process,
// within which it would not conflict with SQLite's. There is no pragma for
// this, and two of the three libraries have no call.
func keepLog(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		return fmt.Errorf("keep the log of %q: %w", f.Name(), err)
	}
	return nil
}
