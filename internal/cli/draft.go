package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/store/driver"
)

// draft is a new store that appears complete or not at all. It is made in a
// private directory and moved to its name at the end. A failed run therefore
// removes only files that it has made, never the log of a killed process or the
// store of a concurrent command.
type draft struct {
	url      string         // at which the store is made
	temp     *filesync.Temp // nil on a server, where the store is made in place
	from, to string         // the file or directory to move
	made     string         // a directory that this run has created for it, or ""
}

// serverData is the part of an embedded server's directory that holds the
// store; the rest is recreated at each start.
const serverData = "data"

// newDraft fails if no new store can be made at the URL.
func newDraft(raw string) (*draft, error) {
	path, exists := localPath(raw)
	if path == "" {
		return &draft{url: raw}, nil
	}
	u, err := driver.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	d := &draft{}
	if engine.Find(u.Scheme).Server {
		u.Path, err = d.beginDirectory(path, exists)
	} else {
		u.Path, err = d.beginFile(path, exists)
	}
	if err != nil {
		return nil, errors.Join(err, d.giveUp())
	}
	u.Opaque = ""
	d.url = u.String()
	return d, nil
}

// beginFile returns the temporary path for a store that is a file.
func (d *draft) beginFile(path string, exists bool) (_ string, err error) {
	if exists {
		return "", alreadyThere(path)
	}
	if err := dbfile.Check(path, false); err != nil {
		return "", err
	}
	if d.temp, err = filesync.TempDir(path+".restore", nil); err != nil {
		return "", err
	}
	d.from, d.to = filepath.Join(d.temp.Path(), filepath.Base(path)), path
	return d.from, nil
}

// beginDirectory returns the temporary path for a store that is a server's
// directory. An existing empty directory, such as a volume, is accepted. It
// cannot be replaced, so the temporary directory is made inside it.
func (d *draft) beginDirectory(path string, exists bool) (_ string, err error) {
	if !exists {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return "", err
		}
		d.made = path
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	stem := filepath.Join(path, "restore")
	for _, entry := range entries {
		if !filesync.IsTemp(stem, entry.Name()) {
			return "", alreadyThere(path)
		}
	}
	if d.temp, err = filesync.TempDir(stem, pgembed.RemoveSockets); err != nil {
		return "", err
	}
	d.from, d.to = filepath.Join(d.temp.Path(), serverData), filepath.Join(path, serverData)
	return d.temp.Path(), dbfile.OwnLike(d.temp.Path(), path)
}

func alreadyThere(path string) error {
	return fmt.Errorf("%q exists already; name another store", path)
}

// publish moves the draft to its name. The store must be closed.
func (d *draft) publish() error {
	if d.temp == nil {
		return nil
	}
	err := d.checkNoLog()
	if err == nil {
		err = filesync.Name(d.from, d.to)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("another process has made %q meanwhile; name another store", d.to)
	case err != nil:
		return err
	}
	return errors.Join(filesync.Dir(filepath.Dir(d.to)), d.temp.Remove())
}

// checkNoLog fails when the engine has left a log, because the file without its
// log is not the complete store.
func (d *draft) checkNoLog() error {
	for _, end := range []string{"-wal", ".wal"} {
		if st, err := os.Stat(d.from + end); err == nil && st.Size() > 0 {
			return fmt.Errorf("the engine has not emptied its log, %s%s; restore again", filepath.Base(d.from), end)
		}
	}
	return nil
}

// giveUp removes the draft.
func (d *draft) giveUp() error {
	if d.temp == nil {
		return d.removeMade()
	}
	return errors.Join(d.temp.Remove(), d.removeMade())
}

func (d *draft) removeMade() error {
	if d.made == "" {
		return nil
	}
	err := os.Remove(d.made)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		err = nil // another process has made something there
	}
	return err
}

// localPath returns the file or directory of a URL, or "" for a server, and
// whether it exists.
func localPath(raw string) (path string, exists bool) {
	u, err := driver.ParseURL(raw)
	if err != nil || u.Host != "" || u.Query().Get("host") != "" {
		return "", false
	}
	if path, err = driver.FilePath(u); err != nil {
		return "", false
	}
	if path, err = dbfile.Resolve(path); err != nil {
		return "", false
	}
	_, err = os.Lstat(path)
	return path, err == nil
}
