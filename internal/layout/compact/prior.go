package compact

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// scratch is what a write transaction has read or made so far. It is valid for
// a transaction whose progress has the same tip, and for no other.
type scratch struct {
	tip   tip
	names *names
	found map[entity.Key]*version // live versions as Prior gave them
}

// writeView opens a view of a write transaction, which may hold what never
// commits.
func (l *Layout) writeView(ctx context.Context, tx driver.Querier, at uint64) (*view, *scratch, error) {
	v, err := l.newView(ctx, tx, at)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	s := l.scratch
	l.mu.Unlock()
	if s == nil || s.tip != v.p.tip {
		s = &scratch{tip: v.p.tip, names: newNames(), found: map[entity.Key]*version{}}
		if err := s.names.load(ctx, tx, l.sql["names"], v.p.names); err != nil {
			return nil, nil, err
		}
		l.setScratch(s)
	}
	v.names = s.names
	return v, s, nil
}

func (l *Layout) setScratch(s *scratch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scratch = s
}

// Prior implements layout.Layout.
func (l *Layout) Prior(ctx context.Context, q driver.Querier, at uint64, needs map[entity.Key]entity.Need) (map[entity.Key]entity.Prior, error) {
	v, s, err := l.writeView(ctx, q, at)
	if err != nil {
		return nil, err
	}
	keys := make([]entity.Key, 0, len(needs))
	for key := range needs {
		keys = append(keys, key)
	}
	live, err := v.live(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read live versions: %w", err)
	}
	prior := make(map[entity.Key]entity.Prior, len(needs))
	var content []*version
	var ends []entity.Key
	for key, need := range needs {
		found := live[key]
		if found == nil {
			if need&entity.NeedEnd != 0 {
				ends = append(ends, key)
			}
			continue
		}
		s.found[key] = found
		e, err := found.unpack(v.names.list())
		if err != nil {
			return nil, err
		}
		prior[key] = entity.Prior{Live: e}
		if need&entity.NeedContent != 0 {
			content = append(content, found)
		}
	}
	contents, err := l.readContents(ctx, q, content)
	if err != nil {
		return nil, fmt.Errorf("read payloads: %w", err)
	}
	for _, found := range content {
		prior[found.key].Live.Content = contents[found.content]
	}
	for _, key := range ends {
		expired, err := v.ranOut(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("read ended versions: %w", err)
		}
		prior[key] = entity.Prior{Expired: expired}
	}
	return prior, nil
}

// live returns the versions of keys that are visible in a view above the last
// block, by key.
func (v *view) live(ctx context.Context, keys []entity.Key) (map[entity.Key]*version, error) {
	found := make(map[entity.Key]*version, len(keys))
	wanted := make(map[entity.Key]bool, len(keys))
	var hashes []any
	for _, key := range keys {
		if c := lookup(v.nodes, v.at, key); c == nil {
			wanted[key] = true
			hashes = append(hashes, hashKey(key))
		} else if c.newID != 0 && c.next.visible(v.at) {
			found[key] = &c.next
		}
	}
	return found, v.l.eachQuery(ctx, v.q, "current_by_key", 1, hashes, nil, func(rows driver.Rows) error {
		r, err := scanVersion(rows)
		if err == nil && wanted[r.key] && r.visible(v.at) {
			found[r.key] = r
		}
		return err
	})
}

// ranOut tells whether the last version of a key that is not live reached its
// expiration by itself.
func (v *view) ranOut(ctx context.Context, key entity.Key) (bool, error) {
	if c := lookup(v.nodes, v.at, key); c != nil {
		if c.newID == 0 {
			return false, nil
		}
		trace, err := v.trace(&c.next)
		return !trace, err
	}
	var last *version
	expired := false
	see := func(r *version, to int64) {
		if r.key == key && (last == nil || r.from > last.from) {
			last, expired = r, to == r.expires
		}
	}
	hash := []any{hashKey(key)}
	err := v.l.eachQuery(ctx, v.q, "current_by_key", 1, hash, nil, func(rows driver.Rows) error {
		r, err := scanVersion(rows)
		if err == nil {
			see(r, r.expires)
		}
		return err
	})
	err = errors.Join(err, v.l.eachQuery(ctx, v.q, "closed_by_key", 1, hash, nil, func(rows driver.Rows) error {
		var to int64
		r, err := scanVersion(rows, &to)
		if err == nil {
			see(r, to)
		}
		return err
	}))
	if err != nil || !expired {
		return false, err
	}
	trace, err := v.trace(last)
	return !trace, err
}

// trace tells whether a version is an entity.Trace.
func (v *view) trace(r *version) (bool, error) {
	e, err := r.unpack(v.names.list())
	return err == nil && e.Trace(), err
}
