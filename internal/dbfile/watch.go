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

// Watch reports whether open files still have the names that they were opened
// by. A file that was removed or replaced can be written to its end, and no
// process would find its contents. To look at a file takes a microsecond. Its
// methods may be called from several goroutines.
type Watch struct {
	mu    sync.Mutex
	files []watched
}

type watched struct {
	path string
	is   os.FileInfo
}

// Add notes which file has a name now.
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

// Check fails with driver.ErrMoved when a file is not where it was.
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
