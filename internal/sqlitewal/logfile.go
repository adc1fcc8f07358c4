package sqlitewal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// logFile syncs the log instead of SQLite, so that the next transaction can run
// meanwhile. At synchronous=FULL, SQLite syncs within the commit, under its
// lock. At NORMAL it omits only that sync: it still syncs the header of a
// restarted log, the log before a checkpoint copies it, and the database
// afterwards.
//
// The file stays open, because the system reports a disk error once to each
// descriptor that was open at the time. SQLite holds no locks on it.
type logFile struct {
	path     string
	durable  bool // the durability level is Durable
	readOnly bool

	mu     sync.Mutex // held while a sync runs
	file   *os.File
	is     os.FileInfo
	closed bool

	used   atomic.Bool           // there were commits that sync must make durable
	failed atomic.Pointer[error] // why the last sync failed
	syncs  atomic.Int64
}

// deferSync switches a writer's connection to commits that sync makes durable later,
// or back.
func (cfg *Config) deferSync(ctx context.Context, c *sqlstore.Conn, late bool) error {
	if cfg.Options.Durability != driver.Durable {
		return nil
	}
	level := synchronous[driver.Durable]
	if late {
		level = synchronous[driver.Relaxed]
	}
	return setPragma(ctx, c, "PRAGMA synchronous = "+level)
}

// sync makes the contents of the log durable.
func (l *logFile) sync() error {
	if !l.durable {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.failure(); l.closed || err != nil {
		return err
	}
	err := l.reopen()
	switch {
	case l.readOnly && errors.Is(err, fs.ErrNotExist):
		return nil // there is no log
	case err != nil: // another look may find it
		return fmt.Errorf("find the write-ahead log to make it durable: %w", err)
	}
	return l.flush()
}

// flush syncs the file. After a failure the system may have dropped the
// unwritten pages, and a later sync would succeed without them; so the failure
// is remembered. The caller holds mu.
func (l *logFile) flush() error {
	l.syncs.Add(1)
	err := filesync.Data(l.file)
	if err != nil {
		err = fmt.Errorf("make the write-ahead log durable: %w; what was committed last may be lost: look after the disk and open the database again", err)
		l.failed.Store(&err)
	}
	return err
}

// reopen opens the current log. SQLite removes the log when the last process
// closes the database, and later creates another.
func (l *logFile) reopen() error {
	is, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	if l.file != nil && os.SameFile(l.is, is) {
		return nil
	}
	mode := os.O_RDWR
	if l.readOnly {
		mode = os.O_RDONLY
	}
	file, err := os.OpenFile(l.path, mode, 0)
	if err != nil {
		return err
	}
	if is, err = file.Stat(); err != nil {
		return errors.Join(err, file.Close())
	}
	if l.file != nil {
		_ = l.file.Close() // its contents are in the database
	}
	l.file, l.is = file, is
	return nil
}

// failure returns the error of an earlier sync.
func (l *logFile) failure() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// close syncs commits that were not synced yet. The database must be closed
// before. If no other process has it open, the log was merged into the database
// and removed.
func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.failure()
	if err == nil && l.durable && l.used.Load() {
		switch err = l.reopen(); {
		case err == nil:
			err = l.flush()
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}

// reserve extends the log file before it is needed, concurrently with the
// writer. A commit that extends a file waits for the file system's journal, but
// one that overwrites existing bytes does not: on ext4 that wait is half of a
// small commit's time. SQLite overwrites the log from its beginning after a
// restart, so only the first round is slow, but a round is 64 MB.
//
// The file is extended with zeros. Recovery stops there, as at the frames of an
// earlier round, because a frame of page 0 is not valid. The zeros are written
// with O_APPEND, so they cannot overwrite frames of any process.
type reserve struct {
	path  string
	frame int64        // bytes
	limit int64        // log size in frames at which the log is restarted, so no reserve is needed above
	ready atomic.Int64 // frames that the file has room for; after a failure the limit, so that it is not tried again
}

// The sizes of a reserve in bytes.
const (
	reserveFrom  = 1 << 20 // bytes; a log below that gets no reserve
	reserveAhead = 2 << 20 // bytes of room below which the file is extended
	reserveChunk = 4 << 20 // bytes of one extension
)

// spareDisk: a reserve may take one spareDisk-th of the free disk space.
const spareDisk = 16

// runsShort reports whether a log with this many frames is near the end of its
// file.
func (r *reserve) runsShort(logged int64) bool {
	return logged*r.frame >= reserveFrom && logged+reserveAhead/r.frame > r.ready.Load() && logged < r.limit
}

// extend makes the file longer. If that fails, the log grows as it would
// without a reserve, and a commit gets the error, if there is one.
func (r *reserve) extend(ctx context.Context, logged int64) {
	if !r.runsShort(logged) {
		return
	}
	r.ready.Store(r.limit) // if anything fails: never again
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // SQLite holds no locks on this file
	st, err := f.Stat()
	if err != nil {
		return
	}
	size, want := st.Size(), logged*r.frame+reserveChunk
	if free, err := filesync.Free(r.path); err != nil || uint64(max(want-size, 0)) > free/spareDisk {
		return
	}
	zeros := make([]byte, 512<<10) // a commit also syncs these bytes, so not more at once
	for ; size < want && ctx.Err() == nil; size += int64(len(zeros)) {
		if _, err := f.Write(zeros); err != nil {
			return
		}
		if f.Sync() != nil {
			return
		}
	}
	r.ready.Store(size / r.frame)
}

// forget is called after the file was truncated.
func (r *reserve) forget() { r.ready.Store(0) }

// sharedFile is a file of SQLite's that this package reads directly. It stays
// open until the database is closed, because closing any descriptor of it would
// drop SQLite's POSIX locks in this process. So engines on the same database
// share one.
type sharedFile struct {
	file  *os.File
	info  os.FileInfo // which file it is
	users int         // engines of this process that read it

	mu    sync.Mutex
	conns map[int]*sqlstore.Conn // by descriptor of the file; see claim
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

func openShared(path string) (*sharedFile, error) {
	sharedFiles.Lock()
	defer sharedFiles.Unlock()
	is, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, f := range sharedFiles.list {
		if os.SameFile(f.info, is) {
			f.users++
			return f, nil
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &sharedFile{file: file, info: is, users: 1}
	sharedFiles.list = append(sharedFiles.list, f)
	return f, nil
}

// frames returns the frames in the log and the frames not yet in the database.
// It reads the WAL index, the "-shm" file next to the database
// (format: https://www.sqlite.org/walformat.html, section 2.1). One pread after
// a commit takes a microsecond and no lock, while a checkpoint pragma would be a
// whole statement.
func (f *sharedFile) frames() (logged, pending int64) {
	var b [offsetBackfill + 4]byte
	if _, err := f.file.ReadAt(b[:], 0); err != nil {
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
