package sqlitewal

import (
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/sqlstore"
)

// Linux takes a read for a sequential one when the pages before it are in the
// page cache, and then reads the pages behind it as well. In a database these
// are as good as any others: they were more than half of all that questions
// read beyond memory, and they drove out pages that were read again
// (docs/compact.md). So the descriptor of a connection is marked while it reads
// here and there. SQLite does not name its descriptors.

// claim finds the descriptor of a connection that was just opened: the only one
// of the file that no connection has. When there are several, as after another
// engine of this process has opened the same file meanwhile, it has none. SQLite
// may give the descriptor of a closed connection to a new one. The file may be
// nil.
func (f *sharedFile) claim(c *sqlstore.Conn) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var free []int
	for _, fd := range filesync.Descriptors(f.file) {
		if of := f.conns[fd]; of == nil || of.Closed() {
			free = append(free, fd)
		}
	}
	if len(free) == 1 {
		if f.conns == nil {
			f.conns = map[int]*sqlstore.Conn{}
		}
		f.conns[free[0]] = c
	}
}

// randomAccess marks the descriptor of a connection, or takes the mark off.
func (f *sharedFile) randomAccess(c *sqlstore.Conn, on bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for fd, of := range f.conns {
		if of == c {
			filesync.RandomAccess(fd, on)
		}
	}
}
