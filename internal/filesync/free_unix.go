//go:build linux || darwin

package filesync

import "golang.org/x/sys/unix"

// Free returns how many bytes can still be written to the file system of a
// path.
func Free(path string) (uint64, error) {
	var disk unix.Statfs_t
	err := unix.Statfs(path, &disk)
	return disk.Bavail * uint64(disk.Bsize), err
}
