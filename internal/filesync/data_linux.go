package filesync

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ReadAhead starts to read a part of a file into the page cache. Errors are
// ignored, because the real read will report them.
func ReadAhead(f *os.File, offset, n int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, n, unix.FADV_WILLNEED)
}

// RandomAccess turns the system's read-ahead for a descriptor off or on.
func RandomAccess(fd int, on bool) {
	advice := unix.FADV_NORMAL
	if on {
		advice = unix.FADV_RANDOM
	}
	_ = unix.Fadvise(fd, 0, 0, advice)
}

// Descriptors returns this process's other descriptors of a file, as far as the
// system lists them.
func Descriptors(f *os.File) (list []int) {
	var is, other unix.Stat_t
	own := int(f.Fd())
	if unix.Fstat(own, &is) != nil {
		return nil
	}
	open, _ := os.ReadDir("/proc/self/fd") // an error leaves the entries read so far
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err == nil && fd != own && unix.Fstat(fd, &other) == nil && other.Dev == is.Dev && other.Ino == is.Ino {
			list = append(list, fd)
		}
	}
	return list
}

// Data makes a file's content durable, with only the metadata that reading
// needs: the modification time would cost an extra write to the file system's
// journal.
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
