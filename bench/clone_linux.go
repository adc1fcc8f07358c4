package bench

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// flush writes the file system of a directory to the disk. One call beats an fsync
// for each of the thousand files of a Postgres cluster.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
