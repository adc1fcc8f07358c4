//go:build !linux

package sqlitewal

import "os"

// keepLog does nothing, because this system has no locks that belong to open
// files.
func keepLog(*os.File) error { return nil }
