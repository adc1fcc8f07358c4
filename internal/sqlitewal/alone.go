package sqlitewal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// User is a library that has a database open in this process, or is about to
// open it. SQLite's locks are the process's: two libraries in one would not see
// each other's locks, and closing a file drops the locks of both. So a database
// is open by one library at a time.
type User struct {
	library string
	path    string
	is      os.FileInfo // nil until there is a file
	leaving bool
	kept    *os.File // the database, when its log is to stay; see Kept
}

var users struct {
	sync.Mutex
	list []*User
}

// Claim notes that a library is to open a database, and fails when another one has it. It
// comes before the file is opened, since to close it again is what does the damage, and
// so that of two which make a new one at once only one does.
func Claim(library, path string) (*User, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	directory, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	u := &User{library: library, path: filepath.Join(directory, filepath.Base(path))}
	users.Lock()
	defer users.Unlock()
	for _, other := range users.list {
		if other.library != library && other.shares(u) {
			return nil, fmt.Errorf("%w: this process has %q open by %s; open it by that, or close it first", driver.ErrLocked, path, other.library)
		}
	}
	users.list = append(users.list, u)
	return u, nil
}

func (u *User) shares(o *User) bool {
	return u.path == o.path || u.stat() && o.stat() && os.SameFile(u.is, o.is)
}

// stat reports whether there is a file, which stays the user's when it is renamed.
func (u *User) stat() bool {
	if u.is == nil {
		u.is, _ = os.Stat(u.path) // when that fails, opening it tells
	}
	return u.is != nil
}

// Leave says that a user is closing the database. To those who do so at the same time each is
// the last one.
func (u *User) Leave() {
	users.Lock()
	defer users.Unlock()
	u.leaving = true
}

// Alone reports whether no other user in this process has the database open or
// is about to open it. Users that are leaving do not count.
func (u *User) Alone() bool {
	users.Lock()
	defer users.Unlock()
	return !slices.ContainsFunc(users.list, func(other *User) bool { return other != u && !other.leaving && other.shares(u) })
}

// Path is that of the database.
func (u *User) Path() string { return u.path }

// Kept returns the database's file that this package has open while the library closes
// it, because the log is to stay; nil when it is not.
func (u *User) Kept() *os.File { return u.kept }

// End ends the use.
func (u *User) End() {
	users.Lock()
	defer users.Unlock()
	users.list = slices.DeleteFunc(users.list, func(other *User) bool { return other == u })
}
