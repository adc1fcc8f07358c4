package sqlitewal

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/sqlstore"
)

// readAhead has the system read the pages of rows from the file at the same time, before SQLite
// reads them one after the other. It finds them as SQLite does, by the inner pages of a table
// (https://www.sqlite.org/fileformat2.html#b_tree_pages). What it finds is a hint: pages may be
// newer in the log, or be written meanwhile.
type readAhead struct {
	*sharedFile
	mu    sync.Mutex
	roots map[string]uint32 // pages, by table
}

// newReadAhead returns nil when the file cannot be opened, which SQLite will tell.
func newReadAhead(path string) *readAhead {
	f, err := openShared(path)
	if err != nil {
		return nil
	}
	return &readAhead{sharedFile: f, roots: map[string]uint32{}}
}

func (a *readAhead) close() error {
	if a == nil {
		return nil
	}
	return a.sharedFile.close()
}

// rows reads ahead the rows of a table with some row ids, which are int64.
func (a *readAhead) rows(ctx context.Context, c *sqlstore.Conn, table string, ids []any) {
	if a == nil {
		return
	}
	sorted := make([]int64, len(ids))
	for i := range ids {
		sorted[i] = ids[i].(int64)
	}
	slices.Sort(sorted)
	root, size := a.root(ctx, c, table)
	leaves := a.pages(root, size, sorted)
	for i, n := 0, 0; i < len(leaves); i += n {
		for n = 1; i+n < len(leaves) && leaves[i+n] == leaves[i]+uint32(n); n++ {
		}
		filesync.ReadAhead(a.file, int64(leaves[i]-1)*size, int64(n)*size)
	}
}

// root returns the first page of a table, and the size of pages.
func (a *readAhead) root(ctx context.Context, c *sqlstore.Conn, table string) (page uint32, size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var header [2]byte
	if _, err := a.file.ReadAt(header[:], 16); err != nil {
		return 0, 0
	}
	if size = int64(binary.BigEndian.Uint16(header[:])); size == 1 {
		size = 65536
	}
	if a.roots[table] == 0 {
		var n int64
		rows, err := c.Query(ctx, "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?", table)
		if err != nil {
			return 0, 0
		}
		if rows.Next() && rows.Scan(&n) == nil {
			a.roots[table] = uint32(n)
		}
		_ = rows.Close()
	}
	return a.roots[table], size
}

// pages returns the pages that rows of a table lie on, in their order. It reads that of the first
// row, which tells how deep they are.
func (a *readAhead) pages(root uint32, size int64, ids []int64) []uint32 {
	depth, page := 0, a.page(root, size)
	for ; inner(page) && depth < maxDepth; depth++ {
		at, _ := child(page, ids[0])
		page = a.page(at, size)
	}
	if depth == 0 || page == nil || page[0] != leafPage {
		return nil
	}
	list := a.leaves(nil, root, size, depth, ids)
	slices.Sort(list)
	return list
}

// leaves appends the pages that rows lie on, which are so far below one.
func (a *readAhead) leaves(list []uint32, at uint32, size int64, depth int, ids []int64) []uint32 {
	page := a.page(at, size)
	for len(ids) > 0 && inner(page) {
		child, last := child(page, ids[0])
		n := sort.Search(len(ids), func(i int) bool { return ids[i] > last })
		switch {
		case child == 0 || n == 0:
			return list
		case depth == 1:
			list = append(list, child)
		default:
			list = a.leaves(list, child, size, depth-1, ids[:n])
		}
		ids = ids[n:]
	}
	return list
}

// page returns a page, or nil.
func (a *readAhead) page(n uint32, size int64) []byte {
	if n == 0 || size < 512 {
		return nil
	}
	page := make([]byte, size)
	if _, err := a.file.ReadAt(page, int64(n-1)*size); err != nil {
		return nil
	}
	return page
}

// The first byte of a page of a table, and more levels than a table has.
const (
	innerPage = 5
	leafPage  = 13
	maxDepth  = 20
)

func inner(page []byte) bool { return page != nil && page[0] == innerPage }

// child returns the page below an inner one that a row lies on, or 0, and the last row on it.
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

// rowID reads an integer of SQLite's: seven bits a byte, the highest first, and eight of a ninth.
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
