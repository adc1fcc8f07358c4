package duckdb

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"sync"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// A DuckDB file begins with a checksum of 8 bytes and then these.
const (
	magic       = "DUCK"
	magicOffset = 8
)

// taken has the files that this process has open. The library would hand a
// second Engine the first one's instance with the first one's settings. And the
// lock that keeps other processes out is the process's own (fcntl): it ends
// when any descriptor of the file is closed. So nothing here may open a file
// that is taken, and the garbage collector must not close an Engine that was
// not closed.
var taken = struct {
	sync.Mutex
	files map[string]*file
}{files: map[string]*file{}}

// file is a database file that belongs to one Engine.
type file struct {
	path  string
	once  sync.Once
	guard guard
	watch dbfile.Watch
	db    *os.File // a second descriptor of the database, open until the engine has closed it: see taken
}

// takeFile resolves the path and takes the file for this process. It fails with
// ErrLocked when an Engine has it.
func takeFile(path string, cfg config) (*file, error) {
	path, err := resolve(path, cfg)
	if err != nil {
		return nil, err
	}
	taken.Lock()
	defer taken.Unlock()
	if taken.files[path] != nil {
		return nil, fmt.Errorf("%w: this process has it open already; share that store or close it", driver.ErrLocked)
	}
	f := &file{path: path, guard: guard{path: path + ".guard", mode: dbfile.Mode(path)}}
	if err := f.watch.Add(path); err != nil {
		return nil, err
	}
	taken.files[path] = f
	return f, nil
}

// release gives the file free once the engine has closed it. It may be called more
// than once.
func (f *file) release() {
	f.once.Do(func() {
		_ = f.guard.close(false)
		if f.db != nil {
			_ = f.db.Close()
		}
		taken.Lock()
		defer taken.Unlock()
		delete(taken.files, f.path)
	})
}

// unguard removes the copy that nothing needs any more, because the engine has
// ended with a checkpoint. The engine has given its lock back then, so this takes
// it again for the removal: who opens the database next makes a copy of the same
// name, and whoever has the lock now has that copy too.
func (f *file) unguard() error {
	if f.guard.out == nil || f.db == nil {
		return nil
	}
	if err := lock(f.db); err != nil {
		if errors.Is(err, driver.ErrLocked) {
			return nil // the copy is the next one's already
		}
		return err
	}
	return f.guard.close(true) // the lock ends with f.db, in release
}

// log returns the path of the write-ahead log. Between runs it may hold commits
// that the database file lacks: only the engine may remove it.
func (f *file) log() string { return f.path + ".wal" }

// closeLog gives the log the permissions of the database. The engine makes the
// log after each checkpoint, readable for everybody as far as the process's
// umask allows.
func (f *file) closeLog() {
	mode := f.guard.mode
	if st, err := os.Stat(f.log()); err == nil && st.Mode().Perm()&^mode != 0 {
		_ = os.Chmod(f.log(), mode) // of another's file it is the owner's affair
	}
}

// resolve returns where a database is, which it makes if need be.
func resolve(path string, cfg config) (string, error) {
	path, err := dbfile.Resolve(path)
	if err != nil {
		return "", err
	}
	// The library takes path and settings in one text and cuts it at "?".
	if u, err := url.Parse(path + "?x=1"); err != nil || u.RawQuery != "x=1" {
		return "", driver.Of(driver.ErrUnsupported, fmt.Errorf("%q has one of ? # %% or a control character, which DuckDB does not take in a path; rename it", path))
	}
	if err := dbfile.Check(path, cfg.Options.ReadOnly); err != nil || cfg.Options.ReadOnly {
		return path, err
	}
	return path, dbfile.Make(path, true, func(path string) error {
		connector, err := newConnector(path, &cfg)
		if err != nil {
			return mapError(err)
		}
		return connector.Close()
	})
}

// newConnector starts an engine, attaches a file, which is made when it does not
// exist, and has all connections use it.
func newConnector(path string, cfg *config) (*duckdb.Connector, error) {
	ctx := context.Background()
	opened := false
	connector, err := duckdb.NewConnector(cfg.dsn(path), func(conn sqldriver.ExecerContext) error {
		text := "USE " + attached
		if !opened {
			text = cfg.attach(path) + "; " + text
		}
		_, err := conn.ExecContext(ctx, text, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	first, err := connector.Connect(ctx)
	if err == nil {
		opened = true
		err = first.Close()
	}
	if err != nil {
		return nil, errors.Join(err, connector.Close())
	}
	return connector, nil
}

// check refuses a file that is not a database before the library sees it: for
// the files of some other programs it would go and look for an extension.
func (f *file) check(readOnly bool) error {
	r, err := os.Open(f.path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return driver.Of(driver.ErrReadOnly, err)
	case err != nil:
		return err
	}
	defer r.Close()
	head := make([]byte, magicOffset+len(magic))
	_, err = io.ReadFull(r, head)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	case err != nil:
		return err
	case string(head[magicOffset:]) == magic && readOnly:
		return f.guard.refuse(r)
	case string(head[magicOffset:]) == magic:
		return nil
	}
	return driver.Of(driver.ErrCorrupt, fmt.Errorf("%q is no DuckDB database", f.path))
}

// mend makes a database whole that was left in the middle of a checkpoint.
func (f *file) mend() error {
	if _, err := os.Stat(f.guard.path); err != nil {
		return nil // nothing to mend it with
	}
	if err := f.openDB(); err != nil {
		return nil // it does not exist yet, or the engine will report the error
	}
	return f.guard.mend(f.db)
}

// protect copies the blocks that the next checkpoint may overwrite. The caller
// holds the writer.
func (f *file) protect(ctx context.Context, c *sqlstore.Conn) error {
	if err := f.openDB(); err != nil {
		return err
	}
	return f.guard.refresh(ctx, c, f.db)
}

// openDB opens the database for writing, which its lock asks for.
func (f *file) openDB() (err error) {
	if f.db != nil {
		return nil
	}
	if f.db, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		f.db = nil
	}
	return err
}
