//go:build !unix

package cli

import "os"

// ownedByRoot always returns false, because these systems have no root.
func ownedByRoot(os.FileInfo) bool { return false }
