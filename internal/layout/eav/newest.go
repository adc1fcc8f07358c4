package eav

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// How many rows a walk asks for: at first so many times the limit and some, and when
// they were not enough so many times more. Engines in the process stop when the walk
// does; this bounds what a server sends.
const (
	walkRows   = 4
	walkSpare  = 64
	walkGrowth = 8
)

// newestFirst is the order of results.
func newestFirst(a, b *entity.Entity) int {
	return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), bytes.Compare(a.Key[:], b.Key[:]))
}

// newest returns the answer to a request in order, without contents, if a walk finds it.
func (v view) newest(ctx context.Context, req layout.Request) (list []*entity.Entity, walked bool, err error) {
	w, err := v.walk(ctx, req)
	if err != nil || w == nil || len(w.legs) == 0 {
		return nil, w != nil, err
	}
	most, rows := req.Limit, int64(req.Limit)*walkRows+walkSpare
	if req.Limit == 0 {
		most, rows = math.MaxInt, firstLimit // of which there are fewer, see walker.choose
	}
	for ; err == nil && !walked; rows *= walkGrowth {
		list, walked, err = v.walkOnce(ctx, w, req.After, most, rows)
	}
	return list, walked, err
}

// walkOnce reads a number of rows at most. It returns false when these do not tell.
func (v view) walkOnce(ctx context.Context, w *walk, after *layout.Position, most int, limit int64) (list []*entity.Entity, done bool, err error) {
	rows, err := v.q.Query(ctx, w.text, append(slices.Clip(w.args), limit)...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var read int64
	last := uint64(math.MaxUint64)
	for rows.Next() {
		e, err := scanEntity(rows)
		if err != nil {
			return nil, false, err
		}
		if e.LastModifiedAtBlock > last {
			return nil, false, fmt.Errorf("%w: versions out of order: %s of block %d after one of block %d", driver.ErrCorrupt, e.Key, e.LastModifiedAtBlock, last)
		}
		last = e.LastModifiedAtBlock
		read++
		if after == nil || newestFirst(e, &entity.Entity{Key: after.Key, Sequence: after.Sequence}) > 0 {
			list = insert(list, e, most)
		}
		if len(list) == most && list[most-1].CreatedAtBlock() > last {
			return list, true, nil
		}
	}
	return list, read < limit, rows.Err()
}

// insert puts a version into its place of a sorted list with a greatest length. Legs of
// a value that is asked for twice find it twice.
func insert(list []*entity.Entity, e *entity.Entity, most int) []*entity.Entity {
	at, has := slices.BinarySearchFunc(list, e, newestFirst)
	if has || at == most {
		return list
	}
	list = slices.Insert(list, at, e)
	return list[:min(len(list), most)]
}

// fetchSizes are of how many versions one statement fetches the contents: few sizes, so
// that few statements are prepared.
var fetchSizes = [...]int{64, 16, 4, 1}

// fetch yields the versions of a list with their contents.
func (v view) fetch(ctx context.Context, list []*entity.Entity, yield func(*entity.Entity, error) bool) {
	for len(list) > 0 {
		size := fetchSizes[slices.IndexFunc(fetchSizes[:], func(n int) bool { return n <= len(list) })]
		if err := v.contents(ctx, list[:size]); err != nil {
			yield(nil, err)
			return
		}
		for _, e := range list[:size] {
			if !yield(e, nil) {
				return
			}
		}
		list = list[size:]
	}
}

// contents reads the contents of some versions.
func (v view) contents(ctx context.Context, list []*entity.Entity) error {
	args, versions := []any{}, map[entity.Key]*entity.Entity{}
	for _, e := range list {
		args = append(args, e.Key[:], int64(e.LastModifiedAtBlock))
		versions[e.Key] = e
	}
	rows, err := v.q.Query(ctx, "SELECT q.entity_key, q.payload FROM (VALUES (?, ?)"+strings.Repeat(", (?, ?)", len(list)-1)+") AS x"+
		" CROSS JOIN payloads AS q ON q.entity_key = x.column1 AND q.from_block = x.column2", args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key, content []byte
		if err := rows.Scan(&key, &content); err != nil {
			return err
		}
		versions[entity.Key(key)].Content = content
	}
	return rows.Err()
}
