package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// The disk space of a database is estimated from layouts with a row for each
// attribute. The estimate is rather too high, because it decides before a load
// of hours.
const (
	rowBytes   = 80        // of a row in its table
	indexBytes = 30        // of a row in one index
	spareSpace = 256 << 20 // kept free in addition, for logs and sorting
)

// diskBytes estimates the disk space of a generated stream in a layout.
func diskBytes(a source.Amount, layout string) uint64 {
	return a.PayloadBytes + uint64(float64(a.Rows)*(rowBytes+indexBytes*float64(schemas.CountIndexes(layout))))
}

// enoughSpace checks that the disk of a file has room for need bytes, less the
// bytes that the file has already.
func enoughSpace(path string, need uint64) error {
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		need -= min(need, uint64(st.Size()))
	}
	dir := filepath.Dir(path)
	free, err := filesync.Free(dir)
	if err != nil || need+spareSpace <= free {
		return nil // where the directory is wrong, writing fails with the reason
	}
	return fmt.Errorf("%w: about %s are needed in %s and %s are free; choose a smaller scale or another disk",
		driver.ErrDiskFull, size(need+spareSpace), dir, size(free))
}

// size formats a number of bytes for people.
func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
