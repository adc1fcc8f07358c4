package eav

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// How many rows a walk asks for at first, and how many times more when too few matched.
const (
	walkSpare  = 16
	walkGrowth = 8
)

// walkRows is how many rows a walk with a limit asks for at first. Engines in the process
// stop when the walk does. A server reads and sends them all: most walks of the base profile
// need no more than these, and others ask once more.
func (d dialect) walkRows(limit int) int64 {
	if d.rowid {
		return 2*int64(limit) + walkSpare
	}
	return int64(limit) + int64(limit)/4 + walkSpare
}

// found is a version without its content, of which it has the length in bytes.
type found struct {
	*entity.Entity
	length int64
}

// newestFirst is the order of results.
func newestFirst(a, b found) int {
	return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), bytes.Compare(a.Key[:], b.Key[:]))
}

// newest returns the answer to a request in order, without contents, if a walk finds it.
func (v view) newest(ctx context.Context, req layout.Request) (list []found, walked bool, err error) {
	w, err := v.walk(ctx, req)
	if err != nil || w == nil || len(w.legs) == 0 {
		return nil, w != nil, err
	}
	r := &walkReader{view: v, walk: w, after: req.After, most: req.Limit}
	p := part{lower: w.lower, upper: w.upper, newest: math.MaxUint64, rows: v.dialect.walkRows(req.Limit)}
	if req.Limit == 0 {
		r.most, p.rows = math.MaxInt, firstLimit // of which there are fewer, see walker.choose
	}
	if req.After != nil {
		p.newest = req.After.Sequence
	}
	for first := true; ; first = false {
		done, err := r.read(ctx, p)
		if first && errors.Is(err, driver.ErrUnsupported) {
			return nil, false, nil // without legs there are fewer values
		}
		if err != nil || done {
			return r.list, true, err
		}
		p = r.next(p)
	}
}

// walkReader reads a walk, part by part.
type walkReader struct {
	view
	walk  *walk
	after *layout.Position
	most  int     // wanted
	list  []found // in order
	last  uint64  // first block of the version read last
}

// next returns what to read after a part that did not tell: more, from the block on that it
// came to. Once as many are found as are wanted, others must have been created no earlier than
// the last of these: they are looked for by their sequence, before anything else is read of them.
func (r *walkReader) next(p part) part {
	if len(r.list) < r.most {
		p.rows *= walkGrowth
		p.upper = int64(r.last)
		return p
	}
	worst := r.list[r.most-1]
	p.lower, p.upper = max(p.lower, int64(worst.CreatedAtBlock())), int64(r.last)
	p.oldest, p.rows = worst.Sequence, -1
	return p
}

// read reads a part. It returns false when that does not tell.
func (r *walkReader) read(ctx context.Context, p part) (done bool, err error) {
	text, args, err := r.walkSQL(r.walk, p)
	if err != nil {
		return false, err
	}
	rows, err := r.q.Query(ctx, text, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var n int64
	for r.last = math.MaxUint64; rows.Next(); n++ {
		var e found
		if e.Entity, err = scanEntity(rows, &e.length); err != nil {
			return false, err
		}
		if e.LastModifiedAtBlock > r.last {
			return false, fmt.Errorf("%w: versions out of order: %s of block %d after one of block %d", driver.ErrCorrupt, e.Key, e.LastModifiedAtBlock, r.last)
		}
		r.last = e.LastModifiedAtBlock
		if r.after == nil || newestFirst(e, found{Entity: &entity.Entity{Key: r.after.Key, Sequence: r.after.Sequence}}) > 0 {
			r.list = insert(r.list, e, r.most)
		}
		if len(r.list) == r.most && r.list[r.most-1].CreatedAtBlock() > r.last {
			return true, nil
		}
	}
	return p.rows < 0 || n < p.rows, rows.Err()
}

// insert puts a version into its place of a sorted list with a greatest length, unless it
// is there: legs of a value that is asked for twice find it twice, as parts that meet do.
func insert(list []found, e found, most int) []found {
	at, has := slices.BinarySearchFunc(list, e, newestFirst)
	if has || at == most {
		return list
	}
	list = slices.Insert(list, at, e)
	return list[:min(len(list), most)]
}

// fetchSizes are of how many versions one statement fetches the contents: few sizes, so
// that few statements are prepared. Together they have at most fetchBytes, or are one.
var fetchSizes = [...]int{64, 16, 4, 1}

const fetchBytes = 1 << 20

// fetch yields the versions of a list with their contents.
func (v view) fetch(ctx context.Context, list []found, yield func(*entity.Entity, error) bool) {
	for len(list) > 0 {
		size := fetchSize(list)
		if err := v.contents(ctx, list[:size]); err != nil {
			yield(nil, err)
			return
		}
		for i := range list[:size] {
			e := list[i].Entity
			list[i].Entity = nil // its content goes when who asked is done with it
			if !yield(e, nil) {
				return
			}
		}
		list = list[size:]
	}
}

// fetchSize is how many of a list the next statement fetches.
func fetchSize(list []found) int {
	n, bytes := 0, int64(0)
	for n < min(len(list), fetchSizes[0]) && (n == 0 || bytes+list[n].length <= fetchBytes) {
		bytes += list[n].length
		n++
	}
	return fetchSizes[slices.IndexFunc(fetchSizes[:], func(size int) bool { return size <= n })]
}

// contents reads the contents of some versions.
func (v view) contents(ctx context.Context, list []found) error {
	args, versions := []any{}, map[entity.Key]*entity.Entity{}
	for _, e := range list {
		args = append(args, e.Key[:], int64(e.LastModifiedAtBlock))
		versions[e.Key] = e.Entity
	}
	row := v.dialect.keyed
	text := "SELECT q.entity_key, q.payload FROM (VALUES " + row + strings.Repeat(", "+row, len(list)-1) + ") AS x" +
		v.dialect.orderedJoin + " payloads AS q ON q.entity_key = x.column1 AND q.from_block = x.column2"
	return statement.Each(ctx, v.q, text, args, func(rows driver.Rows) error {
		var key, content []byte
		err := rows.Scan(&key, &content)
		if err == nil {
			versions[entity.Key(key)].Content = content
		}
		return err
	})
}
