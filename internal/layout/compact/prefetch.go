package compact

import (
	"bytes"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

var _ layout.Prefetched = (*Layout)(nil)

// lastSeen is the blocks of the log that were not merged when this process last
// opened or changed the store. The next transaction probably finds the same.
type lastSeen struct{ nodes atomic.Pointer[[]*node] }

func (s *lastSeen) set(nodes []*node) { s.nodes.Store(&nodes) }

func (s *lastSeen) get() []*node {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes
	}
	return nil
}

// PrefetchWrite implements layout.Prefetched: the queries of Writer and Prior. The
// payloads of versions that are not in the log are missing, because their numbers
// are in the versions.
func (l *Layout) PrefetchWrite(block uint64, needs map[entity.Key]entity.Need) []driver.Prefetch {
	expected := []driver.Prefetch{l.sql.Prefetch("progress")}
	nodes, at := l.lastSeen.get(), int64(min(block, entity.MaxBlock))
	var hashes, contents []any
	for _, key := range sortedKeys(needs) {
		switch c := lookup(nodes, at, key); {
		case c == nil:
			hashes = append(hashes, hashKey(key))
		case c.newID != 0 && c.next.visible(at) && needs[key]&entity.NeedContent != 0 && c.next.content != 0:
			contents = append(contents, c.next.content)
		}
	}
	expected = append(expected, l.sql.PrefetchIn("current_by_key", hashes, nil)...)
	return append(expected, l.sql.PrefetchIn("contents", contents, nil)...)
}

// PrefetchView implements layout.Prefetched: the queries of View and of Get.
func (l *Layout) PrefetchView(block uint64, keys []entity.Key) []driver.Prefetch {
	expected := []driver.Prefetch{l.sql.Prefetch("progress")}
	nodes, at := l.lastSeen.get(), int64(min(block, entity.MaxBlock))
	past := len(nodes) > 0 && at < nodes[len(nodes)-1].block
	for _, key := range keys {
		switch c := lookup(nodes, at, key); {
		case c != nil && c.newID != 0 && c.next.visible(at) && c.next.content != 0:
			expected = append(expected, l.sql.PrefetchIn("contents", []any{c.next.content}, nil)...)
		case c == nil && !l.opts.Apart:
			args := []any{hashKey(key), at, at}
			expected = append(expected, l.sql.Prefetch("current_at", args...))
			if past {
				expected = append(expected, l.sql.Prefetch("closed_at", args...))
			}
		}
	}
	return expected
}

// sortedKeys returns keys in an order that is the same each time, so that a query
// over them is found among those that were expected.
func sortedKeys[V any](keys map[entity.Key]V) []entity.Key {
	return slices.SortedFunc(maps.Keys(keys), func(a, b entity.Key) int { return bytes.Compare(a[:], b[:]) })
}
