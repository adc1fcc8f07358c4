package sqlitewal

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
)

// walIndex reads the size of the log from the WAL-index, the "-shm" file beside
// the database (format: https://www.sqlite.org/walformat.html, section 2.1).
// One pread after a commit costs a microsecond and takes no lock, where a
// checkpoint pragma would cost a statement.
//
// The file stays open until the database is closed: closing any descriptor of
// it would drop the POSIX locks that SQLite holds on it in this process.
type walIndex struct {
	file  *os.File
	is    os.FileInfo // which file it is
	users int         // engines of this process that read it
}

// Offsets in the WAL-index, whose integers are in the machine's byte order.
const (
	offsetMaxFrame = 16 // frames in the log
	offsetBackfill = 96 // frames already copied into the database
)

// openIndexes are the open WAL-indexes of this process. Engines on the same
// database share one descriptor, for the reason that walIndex gives.
var openIndexes struct {
	sync.Mutex
	list []*walIndex
}

func openWALIndex(database string) (*walIndex, error) {
	openIndexes.Lock()
	defer openIndexes.Unlock()
	path := database + "-shm"
	is, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find the WAL-index: %w", err)
	}
	for _, w := range openIndexes.list {
		if os.SameFile(w.is, is) {
			w.users++
			return w, nil
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the WAL-index: %w", err)
	}
	w := &walIndex{file: f, is: is, users: 1}
	openIndexes.list = append(openIndexes.list, w)
	return w, nil
}

// frames returns the frames in the log and those not yet in the database.
func (w *walIndex) frames() (logged, pending int64) {
	var b [offsetBackfill + 4]byte
	if _, err := w.file.ReadAt(b[:], 0); err != nil {
		return 0, 0 // not written yet: an empty log
	}
	number := func(offset int) int64 { return int64(binary.NativeEndian.Uint32(b[offset:])) }
	logged = number(offsetMaxFrame)
	return logged, max(logged-number(offsetBackfill), 0)
}

// close gives the WAL-index up; the last user closes the file.
func (w *walIndex) close() error {
	openIndexes.Lock()
	defer openIndexes.Unlock()
	if w.users--; w.users > 0 {
		return nil
	}
	openIndexes.list = slices.DeleteFunc(openIndexes.list, func(other *walIndex) bool { return other == w })
	return w.file.Close()
}
