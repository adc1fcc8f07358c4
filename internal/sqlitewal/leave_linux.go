package sqlitewal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The bytes of a database that its users have a shared lock on, and who removes its log an
// exclusive one (https://www.sqlite.org/src/file/src/os.h, SHARED_FIRST).
const (
	sharedFirst = 1<<30 + 2
	sharedSize  = 510
)

// keepLog keeps the log where it is while this process closes the database: it takes
// a lock on the file that makes SQLite believe that another process reads it. The lock
// belongs to the open file and not to the process, in which SQLite's would not
// conflict. No pragma says the same, and two of the three libraries have no call.
func keepLog(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		return fmt.Errorf("keep the log of %q: %w", f.Name(), err)
	}
	return nil
}
