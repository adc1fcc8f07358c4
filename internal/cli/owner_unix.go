//go:build unix

package cli

import (
	"os"
	"syscall"
)

// ownedByRoot reports whether a file belongs to root.
func ownedByRoot(file os.FileInfo) bool {
	st, ok := file.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}
