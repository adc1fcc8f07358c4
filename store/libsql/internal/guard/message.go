package guard

import (
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// messages are the beginnings of SQLite's messages
// (https://www.sqlite.org/rescode.html) for results that callers must
// distinguish.
var messages = []struct {
	start    string
	sentinel error
}{
	{"database is locked", driver.ErrLocked},
	{"database table is locked", driver.ErrLocked},
	{"database schema is locked", driver.ErrLocked},
	{"database disk image is malformed", driver.ErrCorrupt},
	{"malformed database schema", driver.ErrCorrupt},
	{"file is not a database", driver.ErrCorrupt},
	{"file is encrypted or is not a database", driver.ErrCorrupt},
	{"database or disk is full", driver.ErrDiskFull},
	{"attempt to write a readonly database", driver.ErrReadOnly},
	{"UNIQUE constraint failed", driver.ErrConflict},
	{"NOT NULL constraint failed", driver.ErrConflict},
	{"CHECK constraint failed", driver.ErrConflict},
	{"FOREIGN KEY constraint failed", driver.ErrConflict},
	{"constraint failed", driver.ErrConflict},
	// The parser of SQLite 3.45 has a stack of fixed size; see the gap
	// deep-sql.
	{"parser stack overflow", driver.ErrUnsupported},
}

// Sentinel returns the driver package's error for a message of SQLite, or nil.
func Sentinel(message string) error {
	for _, m := range messages {
		if strings.HasPrefix(message, m.start) {
			return m.sentinel
		}
	}
	return nil
}
