package sqlitewal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/store/driver"
)

// Place returns the path of a database with its links resolved. It creates the
// file if there is none, and refuses a file that cannot be opened, with a
// clearer error than SQLite's "unable to open database file".
func (cfg *Config) Place(path string) (string, error) {
	o := cfg.Options
	path, err := dbfile.Resolve(path)
	if err != nil {
		return "", err
	}
	if err := errors.Join(dbfile.Check(path, o.ReadOnly), dbfile.CheckIndex(path)); err != nil {
		return "", err
	}
	if o.ReadOnly {
		return path, checkReadable(path)
	}
	return path, dbfile.Make(path, o.Durability != driver.Unsafe, func(path string) error {
		return os.WriteFile(path, emptyFile(cfg.PageSize), 0o600)
	})
}

// checkReadable refuses a database that cannot be read without writing next to
// it: in WAL mode even a reader needs the log and its index, and creates them
// if they are missing.
func checkReadable(path string) error {
	if dbfile.OnReadOnly(path) {
		if hasLog(path) {
			return driver.Of(driver.ErrReadOnly, fmt.Errorf("%q is on a read-only file system, and the log beside it must be written into it first; "+
				"copy both to where they can be written", path))
		}
		return nil
	}
	err := dbfile.MayRead(path+"-wal", path+"-shm") // as a writer left them, or has them now
	if errors.Is(err, fs.ErrNotExist) {
		err = dbfile.MayWrite(filepath.Dir(path))
	}
	if err != nil {
		return driver.Of(driver.ErrReadOnly, fmt.Errorf("a reader makes %q beside the database when nobody writes to it, and this user may not: %w; "+
			"let them write in the directory, read as another user, or copy the database to where they can", path+"-shm", err))
	}
	return nil
}

func hasLog(path string) bool {
	st, err := os.Stat(path + "-wal")
	return err == nil && st.Size() > 0
}

// emptyFile is the single page of an empty database in WAL mode
// (https://www.sqlite.org/fileformat.html): the file header and an empty schema
// table.
func emptyFile(pageSize int) []byte {
	page := make([]byte, pageSize)
	put16 := func(at, n int) { binary.BigEndian.PutUint16(page[at:], uint16(n)) }
	put32 := func(at, n int) { binary.BigEndian.PutUint32(page[at:], uint32(n)) }
	copy(page, "SQLite format 3\x00")
	put16(16, max(pageSize&0xffff, pageSize>>16)) // 65536 is written as 1
	page[18], page[19] = 2, 2                     // written and read with a write-ahead log
	page[21], page[22], page[23] = 64, 32, 32     // fixed by the format
	put32(24, 1)                                  // changes
	put32(28, 1)                                  // pages
	put32(92, 1)                                  // changes when the next number was written
	put32(96, minVersion)                         // SQLite's, that wrote it
	page[100] = 13                                // a leaf of a table
	put16(105, pageSize&0xffff)                   // its content begins at the end; 65536 is written as 0
	return page
}
