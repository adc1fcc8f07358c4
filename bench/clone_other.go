//go:build !linux

package bench

import "os"

// reflink is not used here: files are copied.
func reflink(_, _ *os.File) bool { return false }

// flush writes everything below a directory to the disk.
func flush(dir string) error { return syncFiles(dir) }
