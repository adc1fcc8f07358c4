package sqlitewal

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// User is a library that has a database open in this process. SQLite's locks are the
// process's: two libraries in one would not see each other's, and closing a file drops
// those of both. So a database is open by one library at a time.
type User struct {
	library string
	is      os.FileInfo
}

var users struct {
	sync.Mutex
	list []*User
}

// Alone fails when another library has the database open. It is asked before the database
// is opened, since to close it again is what does the damage.
func Alone(library, path string) error {
	is, err := os.Stat(path)
	if err != nil {
		return nil // a new one, or SQLite says what is wrong
	}
	users.Lock()
	defer users.Unlock()
	for _, u := range users.list {
		if u.library != library && os.SameFile(u.is, is) {
			return fmt.Errorf("open %q: %w: this process has it open by %s; open it by that, or close it first", path, driver.ErrLocked, u.library)
		}
	}
	return nil
}

// Use notes that a library has opened the database.
func Use(library, path string) (*User, error) {
	is, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	u := &User{library, is}
	users.Lock()
	defer users.Unlock()
	users.list = append(users.list, u)
	return u, nil
}

// End is that of a user, who may be nil where opening failed.
func (u *User) End() {
	users.Lock()
	defer users.Unlock()
	users.list = slices.DeleteFunc(users.list, func(other *User) bool { return other == u })
}
