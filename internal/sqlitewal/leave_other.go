//go:build !linux

package sqlitewal

import "os"

// keepLog does nothing: this system has no locks of open files.
func keepLog(*os.File) error { return nil }
