package sqlitewal

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/sqlstore"
)

// readAhead makes the system read the pages of a table's rows concurrently,
// before SQLite reads them one after the other. Ids are int64. It finds the
// pages as SQLite does, through the inner pages of the table
// (https://www.sqlite.org/fileformat2.html#b_tree_pages). The pages are only a
// hint, because newer ones may be in the log, or be written meanwhile. The file
// may be nil.
func (f *sharedFile) readAhead(ctx context.Context, c *sqlstore.Conn, table string, ids []any) {
	if f == nil {
		return
	}
	var header [2]byte
	if _, err := f.file.ReadAt(header[:], 16); err != nil {
		return
	}
	size := int64(binary.BigEndian.Uint16(header[:]))
	if size == 1 {
		size = 65536
	}
	rows, err := c.Query(ctx, "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?", table)
	if err != nil {
		return
	}
	var root int64
	if rows.Next() {
		_ = rows.Scan(&root) // if it fails, root is 0, which is no page
	}
	_ = rows.Close()
	sorted := make([]int64, len(ids))
	for i := range ids {
		sorted[i] = ids[i].(int64)
	}
	slices.Sort(sorted)
	leaves := f.pages(uint32(root), size, sorted)
	for i, n := 0, 0; i < len(leaves); i += n {
		for n = 1; i+n < len(leaves) && leaves[i+n] == leaves[i]+uint32(n); n++ {
		}
		filesync.ReadAhead(f.file, int64(leaves[i]-1)*size, int64(n)*size)
	}
}

// pages returns the pages of a table's rows, in order. It reads the page of the
// first row to learn the depth of the tree.
func (f *sharedFile) pages(root uint32, size int64, ids []int64) []uint32 {
	depth, page := 0, f.page(root, size)
	for ; inner(page) && depth < maxDepth; depth++ {
		at, _ := child(page, ids[0])
		page = f.page(at, size)
	}
	if depth == 0 || page == nil || page[0] != leafPage {
		return nil
	}
	list := f.leaves(nil, root, size, depth, ids)
	slices.Sort(list)
	return list
}

// leaves appends the pages of rows, which are depth levels below page at.
func (f *sharedFile) leaves(list []uint32, at uint32, size int64, depth int, ids []int64) []uint32 {
	page := f.page(at, size)
	for len(ids) > 0 && inner(page) {
		child, last := child(page, ids[0])
		n := sort.Search(len(ids), func(i int) bool { return ids[i] > last })
		switch {
		case child == 0 || n == 0:
			return list
		case depth == 1:
			list = append(list, child)
		default:
			list = f.leaves(list, child, size, depth-1, ids[:n])
		}
		ids = ids[n:]
	}
	return list
}

// page returns a page, or nil.
func (f *sharedFile) page(n uint32, size int64) []byte {
	if n == 0 || size < 512 {
		return nil
	}
	page := make([]byte, size)
	if _, err := f.file.ReadAt(page, int64(n-1)*size); err != nil {
		return nil
	}
	return page
}

// The first byte of a table's inner page, and more levels than any table has.
const (
	innerPage = 5
	leafPage  = 13
	maxDepth  = 20
)

func inner(page []byte) bool { return page != nil && page[0] == innerPage }

// child returns the page below an inner page that contains a row, or 0, and the
// last row in it.
func child(page []byte, id int64) (child uint32, last int64) {
	cells := min(int(binary.BigEndian.Uint16(page[3:])), (len(page)-12)/2)
	cell := func(i int) []byte {
		at := int(binary.BigEndian.Uint16(page[12+2*i:]))
		return page[min(at, len(page)-5):]
	}
	i := sort.Search(cells, func(i int) bool { return rowID(cell(i)[4:]) >= id })
	if i == cells {
		return binary.BigEndian.Uint32(page[8:]), math.MaxInt64
	}
	return binary.BigEndian.Uint32(cell(i)), rowID(cell(i)[4:])
}

// rowID decodes SQLite's integer format: seven bits a byte, the highest first,
// and eight bits in a ninth byte.
func rowID(b []byte) (id int64) {
	for i, c := range b {
		if i == 8 {
			return id<<8 | int64(c)
		}
		if id = id<<7 | int64(c&0x7f); c < 0x80 {
			break
		}
	}
	return id
}

// Linux treats a read as sequential when the pages before it are in the page
// cache, and then also reads the following pages. In a database that is
// useless: these pages were more than half of all reads of queries beyond
// memory, and displaced pages that were needed again (docs/compact.md). So a
// connection's descriptor is marked for random access while it reads that way.
// SQLite does not expose its descriptors.

// claim finds the descriptor of a newly opened connection: the only one of the
// file that no other connection has. If there are several, for example because
// another engine of this process has just opened the same file, the connection
// gets none. SQLite may give the descriptor of a closed connection to a new
// one. The file may be nil.
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

// randomAccess sets or clears the mark on a connection's descriptor.
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
