package libsql

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/store/driver"
)

// The library closes a database in a background thread, after its close
// function has returned. Closing may include a checkpoint and its fsyncs.
const (
	// releaseTimeout bounds the wait for that.
	releaseTimeout = time.Minute
	// releasePoll is the polling interval. A close takes milliseconds.
	releasePoll = 500 * time.Microsecond
)

// fileID identifies a file independently of its names.
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

// closed waits until the library has closed a file, if the file exists.
// While another engine has it open, SQLite keeps all its descriptors, because
// closing one would drop the process's locks on the file.
func closed(u *sqlitewal.User) error {
	id, err := identify(u.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for start := time.Now(); err == nil && u.Alone() && isOpen(id, u.Kept()); time.Sleep(releasePoll) {
		if time.Since(start) > releaseTimeout {
			err = fmt.Errorf("close %q: the library still has it open after %v", u.Path(), releaseTimeout)
		}
	}
	return err
}

// isOpen reports whether this process has a descriptor of the file besides
// ours. It returns false where the system does not list descriptors.
func isOpen(id fileID, ours *os.File) bool {
	mine := -1
	if ours != nil {
		mine = int(ours.Fd())
	}
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
		if err != nil || fd == mine {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && idOf(&st) == id {
			return true
		}
	}
	return false
}

// checkWritable refuses a read-only file before the library does, because the
// library's message is only "14".
func checkWritable(path string, readOnly bool) error {
	if readOnly {
		return nil
	}
	for _, p := range []string{path, filepath.Dir(path)} {
		err := unix.Access(p, unix.W_OK)
		if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
			return driver.Of(driver.ErrReadOnly, fmt.Errorf("%q cannot be written: %w", p, err))
		}
	}
	return nil
}
