package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// Watch checks whether open files still have the names under which they were
// opened. A removed or replaced file can still be written, but its contents
// could not be found again. A check takes a microsecond. Its methods may be
// called from several goroutines.
type Watch struct {
	mu    sync.Mutex
	files []watched
}

type watched struct {
	path string
	is   os.FileInfo
}

// Add records which file a name refers to now.
func (w *Watch) Add(path string) error {
	is, err := os.Lstat(path)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = append(slices.DeleteFunc(w.files, func(f watched) bool { return f.path == path }), watched{path, is})
	return nil
}

// Check fails with driver.ErrMoved when a name refers to another file, or to
// none.
func (w *Watch) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		is, err := os.Lstat(f.path)
		switch {
		case err == nil && os.SameFile(f.is, is):
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %q is not the file that is open; end this process, put the file back or restore a backup, and open it again", driver.ErrMoved, f.path)
		default:
			return fmt.Errorf("look at the database: %w", err)
		}
	}
	return nil
}
