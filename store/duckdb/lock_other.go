//go:build !unix

package duckdb

import "os"

// lock does nothing: here a file that the engine has open cannot be opened for
// writing.
func lock(*os.File) error { return nil }
