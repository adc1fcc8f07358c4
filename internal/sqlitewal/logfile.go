package sqlitewal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// logFile makes the log durable in SQLite's place, so that the next transaction
// can go on meanwhile. SQLite syncs within the commit, under its lock, at
// synchronous=FULL. At NORMAL it leaves out that sync and no other: it still
// syncs the header of a restarted log, the log before a checkpoint copies it,
// and the database after.
//
// The file stays open, since an error of the disk is told once to each descriptor that
// was open at the time. SQLite holds no locks on it.
type logFile struct {
	path     string
	durable  bool // that is the level of durability
	readOnly bool

	mu     sync.Mutex // held while a sync runs
	file   *os.File
	is     os.FileInfo
	closed bool

	used   atomic.Bool           // there were commits that need a sync
	failed atomic.Pointer[error] // why the last sync failed
	syncs  atomic.Int64
}

// late switches a writer's connection to commits that are made durable by sync, or back.
func (cfg *Config) late(ctx context.Context, c *sqlstore.Conn, late bool) error {
	if cfg.Options.Durability != driver.Durable {
		return nil
	}
	level := synchronous[driver.Durable]
	if late {
		level = synchronous[driver.Relaxed]
	}
	return cfg.Pragma(ctx, c, "PRAGMA synchronous = "+level)
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

// flush syncs the file. When that fails the system may have dropped the pages
// that it could not write, and reports that only once: a later sync succeeds
// without them. The caller holds mu.
func (l *logFile) flush() error {
	l.syncs.Add(1)
	err := filesync.Data(l.file)
	if err != nil {
		err = fmt.Errorf("make the write-ahead log durable: %w; what was committed last may be lost: look after the disk and open the database again", err)
		l.failed.Store(&err)
	}
	return err
}

// reopen opens the current log. SQLite removes it when the last process closes
// the database, and makes another.
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

// failure is that of an earlier sync.
func (l *logFile) failure() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// close syncs commits that were not synced yet. The database is closed before:
// when no other process has it open, the log is in the database and gone.
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
