package filesync

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Name gives a file or directory another name, unless that is taken, which is
// fs.ErrExist.
func Name(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system cannot
		return link(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
