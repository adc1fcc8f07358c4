package filesync

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ReadAhead begins to read a part of a file into the page cache. That it cannot is no error:
// whoever reads it next will tell.
func ReadAhead(f *os.File, offset, n int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, n, unix.FADV_WILLNEED)
}

// RandomAccess has the system read nothing but what is asked for by a
// descriptor, or again what it takes to come next.
func RandomAccess(fd int, on bool) {
	advice := unix.FADV_NORMAL
	if on {
		advice = unix.FADV_RANDOM
	}
	_ = unix.Fadvise(fd, 0, 0, advice)
}

// Descriptors returns the other descriptors of a file that this process has
// open, as far as the system tells.
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
