//go:build !linux

package filesync

import "os"

// Data makes a file's content durable.
func Data(f *os.File) error { return f.Sync() }
