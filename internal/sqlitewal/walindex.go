package sqlitewal

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
)

// walIndex reads the size of the log from the WAL-index, the "-shm" file next
// to the database (format: https://www.sqlite.org/walformat.html, section 2.1).
// One pread after a commit costs a microsecond and takes no lock, where a
// checkpoint pragma would cost a statement.
type walIndex struct{ *sharedFile }

// sharedFile is a file of SQLite's that is read past it. It stays open until the database is
// closed: closing any descriptor of it would drop the POSIX locks that SQLite holds on it in this
// process. So engines on the same database share one.
type sharedFile struct {
	file  *os.File
	is    os.FileInfo // which file it is
	users int         // engines of this process that read it
}

// Offsets in the WAL-index, whose integers are in the machine's byte order.
const (
	offsetMaxFrame = 16 // frames in the log
	offsetBackfill = 96 // frames already copied into the database
)

// sharedFiles has the open files of this process.
var sharedFiles struct {
	sync.Mutex
	list []*sharedFile
}

func openWALIndex(database string) (*walIndex, error) {
	f, err := openShared(database + "-shm")
	if err != nil {
		return nil, fmt.Errorf("open the WAL-index: %w", err)
	}
	return &walIndex{f}, nil
}

func openShared(path string) (*sharedFile, error) {
	sharedFiles.Lock()
	defer sharedFiles.Unlock()
	is, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, f := range sharedFiles.list {
		if os.SameFile(f.is, is) {
			f.users++
			return f, nil
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &sharedFile{file: file, is: is, users: 1}
	sharedFiles.list = append(sharedFiles.list, f)
	return f, nil
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

// close gives the file up, if there is one; the last user closes it.
func (f *sharedFile) close() error {
	if f == nil {
		return nil
	}
	sharedFiles.Lock()
	defer sharedFiles.Unlock()
	if f.users--; f.users > 0 {
		return nil
	}
	sharedFiles.list = slices.DeleteFunc(sharedFiles.list, func(other *sharedFile) bool { return other == f })
	return f.file.Close()
}
