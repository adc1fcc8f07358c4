package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// spareSpace is kept free beside what is to be written: logs and sorting.
const spareSpace = 256 << 20

// enoughSpace checks that the disk of a path or of an embedded database's URL
// has room for need bytes more than what is there already.
func enoughSpace(dst string, need uint64) error {
	path := dst
	if isURL(dst) {
		u, err := driver.ParseURL(dst)
		if err != nil || u.Host != "" {
			return nil // a server's disk is its own affair
		}
		if path = u.Path; u.Opaque != "" {
			path = u.Opaque
		}
	}
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		need -= min(need, uint64(st.Size()))
	}
	dir := filepath.Dir(path)
	free, err := filesync.Free(dir)
	if err != nil {
		return nil // opening the store will say what is wrong with the directory
	}
	if need+spareSpace > free {
		return fmt.Errorf("%w: about %s are needed in %s and %s are free; choose a smaller scale or another disk",
			store.ErrDiskFull, size(need+spareSpace), dir, size(free))
	}
	return nil
}
