package bench

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// clones tells whether files on the disk of a directory can share their blocks until
// they change, so that copies take no space of their own.
func clones(dir string) bool {
	var pair [2]*os.File
	for i := range pair {
		f, err := os.CreateTemp(dir, ".clone-")
		if err != nil {
			return false
		}
		defer f.Close()
		if err := os.Remove(f.Name()); err != nil {
			return false
		}
		pair[i] = f
	}
	return unix.IoctlFileClone(int(pair[1].Fd()), int(pair[0].Fd())) == nil
}

// flush writes the file system of a directory to the disk. One call beats an fsync
// for each of the thousand files of a Postgres cluster.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
