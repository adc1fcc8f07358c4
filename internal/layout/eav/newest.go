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

// found is a version that matches.
type found struct {
	key      entity.Key
	from     int64
	sequence uint64
}

// newestFirst is the order of results.
func newestFirst(a, b found) int {
	return cmp.Or(cmp.Compare(b.sequence, a.sequence), bytes.Compare(a.key[:], b.key[:]))
}

// newest returns the answer to a request in order, if a walk finds it.
func (v view) newest(ctx context.Context, req layout.Request) (list []found, walked bool, err error) {
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
func (v view) walkOnce(ctx context.Context, w *walk, after *layout.Position, most int, limit int64) (list []found, done bool, err error) {
	rows, err := v.q.Query(ctx, w.text, append(slices.Clip(w.args), limit)...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var read int64
	for rows.Next() {
		var key []byte
		var f found
		if err := rows.Scan(&key, &f.from, &f.sequence); err != nil {
			return nil, false, err
		}
		if len(key) != len(f.key) {
			return nil, false, fmt.Errorf("%w: entity key of %d bytes", driver.ErrCorrupt, len(key))
		}
		f.key = entity.Key(key)
		read++
		if after == nil || newestFirst(f, found{key: after.Key, sequence: after.Sequence}) > 0 {
			list = insert(list, f, most)
		}
		if len(list) == most && list[most-1].sequence>>32 > uint64(f.from) {
			return list, true, nil
		}
	}
	return list, read < limit, rows.Err()
}

// insert puts a version into its place of a sorted list with a greatest length. Legs of
// a value that is asked for twice find it twice.
func insert(list []found, f found, most int) []found {
	at, has := slices.BinarySearchFunc(list, f, newestFirst)
	if has || at == most {
		return list
	}
	list = slices.Insert(list, at, f)
	return list[:min(len(list), most)]
}

// fetchSizes are how many versions one statement fetches: few sizes, so that few
// statements are prepared.
var fetchSizes = [...]int{64, 16, 4, 1}

// fetch yields versions in the order of a list.
func (v view) fetch(ctx context.Context, list []found, content bool, yield func(*entity.Entity, error) bool) {
	for len(list) > 0 {
		size := fetchSizes[slices.IndexFunc(fetchSizes[:], func(n int) bool { return n <= len(list) })]
		some, more := list[:size], true
		list = list[size:]
		v.stream(ctx, v.fetchSQL(size, content), fetchArgs(some), content, func(e *entity.Entity, err error) bool {
			if err == nil {
				at := slices.IndexFunc(some, func(f found) bool { return f.key == e.Key })
				if at < 0 {
					err = fmt.Errorf("%w: versions out of order at %s", driver.ErrCorrupt, e.Key)
				} else {
					some = some[at+1:]
				}
			}
			more = yield(e, err) && err == nil
			return more
		})
		if !more {
			return
		}
	}
}

// fetchSQL returns the statement that fetches a number of versions in the order in
// which they are given, that of the first table of the join, which fetch checks.
func (l *Layout) fetchSQL(n int, content bool) string {
	return l.selectColumns("q", content) + " FROM (VALUES (?, ?)" + strings.Repeat(", (?, ?)", n-1) + ") AS x" +
		" CROSS JOIN payloads AS q ON q.entity_key = x.column1 AND q.from_block = x.column2"
}

func fetchArgs(list []found) []any {
	args := make([]any, 0, 2*len(list))
	for i := range list {
		args = append(args, list[i].key[:], list[i].from)
	}
	return args
}
