package filesync

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Name renames a file or directory. It fails with fs.ErrExist if the new name
// is taken.
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
