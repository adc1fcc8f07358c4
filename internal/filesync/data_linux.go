package filesync

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ReadAhead begins to read a part of a file into the page cache. That it cannot is no error:
// whoever reads it next will tell.
func ReadAhead(f *os.File, offset, n int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, n, unix.FADV_WILLNEED)
}

// Data makes a file's content durable, and of its metadata only the part that
// reading needs, because the time of a write would be one more write to the
// file system's journal.
func Data(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				err = fmt.Errorf("fdatasync %q: %w", f.Name(), err)
			}
			return err
		}
	}
}
