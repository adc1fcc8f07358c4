package libsql

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store/driver"
)

// The library closes a database, with the checkpoint and the fsyncs that this
// may bring, in a thread of its own, after its close function has returned.
const (
	// releaseTimeout bounds the wait for that.
	releaseTimeout = time.Minute
	// releasePoll is the pause between two looks. A close takes milliseconds.
	releasePoll = 500 * time.Microsecond
)

// fileID tells files apart whatever their names.
type fileID struct{ device, inode uint64 }

func identify(path string) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fileID{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return idOf(&st), nil
}

func idOf(st *unix.Stat_t) fileID {
	return fileID{device: uint64(st.Dev), inode: st.Ino} //nolint:unconvert // Dev has another type on other systems
}

// held counts the engines of this process that have a file open. While one has,
// SQLite keeps the descriptors of the others too, because closing any would drop
// the process's locks on the file.
var held = struct {
	sync.Mutex
	engines map[fileID]int
}{engines: map[fileID]int{}}

// heldFile is an engine's share of held.
type heldFile struct {
	path string
	id   fileID
}

func hold(path string) (*heldFile, error) {
	id, err := identify(path)
	if err != nil {
		return nil, err
	}
	held.Lock()
	defer held.Unlock()
	held.engines[id]++
	return &heldFile{path: path, id: id}, nil
}

// release waits, if this is the last engine on the file, until the library has
// closed it.
func (h *heldFile) release() error {
	if h == nil {
		return nil
	}
	held.Lock()
	held.engines[h.id]--
	if held.engines[h.id] == 0 {
		delete(held.engines, h.id)
	}
	held.Unlock()
	return awaitFile(h.path, h.id)
}

// awaitRelease is release after an Open that failed, perhaps before there was a
// file.
func awaitRelease(path string) error {
	id, err := identify(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return awaitFile(path, id)
}

func awaitFile(path string, id fileID) error {
	for start := time.Now(); ; time.Sleep(releasePoll) {
		switch {
		case isHeld(id) || !isOpen(id):
			return nil
		case time.Since(start) > releaseTimeout:
			return fmt.Errorf("close %q: the library still has it open after %v", path, releaseTimeout)
		}
	}
}

func isHeld(id fileID) bool {
	held.Lock()
	defer held.Unlock()
	return held.engines[id] > 0
}

// isOpen tells whether a descriptor of this process is that of a file. Where
// the system does not list descriptors it says no.
func isOpen(id fileID) bool {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && idOf(&st) == id {
			return true
		}
	}
	return false
}

// checkWritable refuses what cannot be written before the library does, which
// tells no more than "14".
func checkWritable(path string, readOnly bool) error {
	if readOnly {
		return nil
	}
	for _, p := range []string{path, filepath.Dir(path)} {
		err := unix.Access(p, unix.W_OK)
		if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
			return fmt.Errorf("open %q for writing: %w: %w", p, driver.ErrReadOnly, err)
		}
	}
	return nil
}
