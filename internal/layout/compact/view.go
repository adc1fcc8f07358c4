package compact

import (
	"context"
	"errors"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// view is what a querier sees at a block.
type view struct {
	l       *Layout
	q       driver.Querier
	p       progress
	at      int64
	past    bool // at is below the last change, so closed versions count
	chain   *chain
	nodes   []*node // of the chain, not merged in this view
	names   *names
	overlay *overlay // set by whoever needs it
	few     bool     // only the newest matches are wanted
}

// readView opens a view over what is committed.
func (l *Layout) readView(ctx context.Context, q driver.Querier, at uint64) (*view, error) {
	v, err := l.newView(ctx, q, at)
	if err != nil {
		return nil, err
	}
	v.names = l.committed
	return v, v.names.load(ctx, q, l.sql["names"], v.p.names)
}

func (l *Layout) newView(ctx context.Context, q driver.Querier, at uint64) (*view, error) {
	v := &view{l: l, q: q, at: int64(min(at, entity.MaxBlock))}
	var err error
	if v.p, err = l.readProgress(ctx, q); err != nil {
		return nil, err
	}
	if v.chain, err = l.chainAt(ctx, q, &v.p); err != nil {
		return nil, err
	}
	v.past = v.at < v.p.last
	v.nodes = after(v.chain.nodes, v.p.merged)
	return v, nil
}

// find returns the version of a key that is visible in the view, or nil.
func (v *view) find(ctx context.Context, key entity.Key) (*version, error) {
	if c := lookup(v.nodes, v.at, key); c != nil {
		if c.newID != 0 && c.next.visible(v.at) {
			return &c.next, nil
		}
		return nil, nil
	}
	hash := []any{hashKey(key)}
	var found *version
	err := v.l.eachQuery(ctx, v.q, "current_by_key", 1, hash, nil, func(rows driver.Rows) error {
		r, err := scanVersion(rows)
		if err == nil && r.key == key && r.visible(v.at) {
			found = r
		}
		return err
	})
	if err != nil || found != nil || !v.past {
		return found, err
	}
	err = v.l.eachQuery(ctx, v.q, "closed_by_key", 1, hash, nil, func(rows driver.Rows) error {
		var to int64
		r, err := scanVersion(rows, &to)
		if err == nil && r.key == key && r.from <= v.at && v.at < to {
			found = r
		}
		return err
	})
	return found, err
}

// Get implements layout.Layout.
func (l *Layout) Get(ctx context.Context, q driver.Querier, at uint64, key entity.Key) (*entity.Entity, error) {
	v, err := l.readView(ctx, q, at)
	if err != nil {
		return nil, err
	}
	found, err := v.find(ctx, key)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, entity.ErrNotFound
	}
	e, err := found.unpack(v.names.list())
	if err != nil {
		return nil, err
	}
	contents, err := l.readContents(ctx, q, []*version{found})
	if err != nil {
		return nil, err
	}
	e.Content = contents[found.content]
	return e, nil
}

// errNoContent: a version's payload is gone.
var errNoContent = errors.New("a payload is missing")

// readContents returns the payloads of versions by number; number 0 is none.
func (l *Layout) readContents(ctx context.Context, q driver.Querier, list []*version) (map[int64][]byte, error) {
	var args []any
	wanted := map[int64][]byte{}
	for _, v := range list {
		if _, ok := wanted[v.content]; !ok && v.content != 0 {
			wanted[v.content] = nil
			args = append(args, v.content)
		}
	}
	err := l.eachQuery(ctx, q, "contents", 1, args, nil, func(rows driver.Rows) error {
		var no int64
		var content []byte
		err := rows.Scan(&no, &content)
		wanted[no] = content
		return err
	})
	if err != nil {
		return nil, err
	}
	for no, content := range wanted {
		if content == nil {
			return nil, errors.Join(driver.ErrCorrupt, errNoContent, errors.New("its number is "+itoa(no)))
		}
	}
	return wanted, nil
}
