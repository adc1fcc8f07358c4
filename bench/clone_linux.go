package bench

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reflink makes dst share the blocks of src until one of them changes. It tells
// whether the file system could.
func reflink(dst, src *os.File) bool {
	return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil
}

// flush writes everything below a directory to the disk. One call for the file
// system beats an fsync for each of the thousand files of a Postgres cluster.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = unix.Syncfs(int(d.Fd()))
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		err = syncFiles(dir)
	}
	return errors.Join(err, d.Close())
}
