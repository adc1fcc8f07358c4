package compact

import (
	"context"
	"fmt"
	"iter"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Openings implements layout.Layout: the tables in the order of the database,
// then the log, all of whose blocks are above what the tables hold.
func (l *Layout) Openings(ctx context.Context, q driver.Querier) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		v, err := l.readView(ctx, q, entity.MaxBlock)
		if err != nil {
			yield(nil, err)
			return
		}
		stopped := false
		dictionary := v.names.list()
		err = eachRow(ctx, q, l.sql["openings"], nil, func(rows driver.Rows) error {
			var content []byte
			r, err := scanVersion(rows, &content)
			if err != nil {
				return err
			}
			e, err := r.unpack(dictionary)
			if err != nil {
				return err
			}
			e.Content = content
			if !yield(e, nil) {
				stopped = true
				return errStopped
			}
			return nil
		})
		if err == nil {
			err = v.logged(ctx, yield, &stopped)
		}
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// logged hands out the versions of the log in the order of blocks and keys.
func (v *view) logged(ctx context.Context, yield func(*entity.Entity, error) bool, stopped *bool) error {
	out := &output{v: v, content: true, yield: yield}
	for _, n := range v.nodes {
		for i := range n.changes {
			c := &n.changes[i]
			if c.newID == 0 {
				continue
			}
			rec, err := parse(c.next.data)
			if err != nil {
				return err
			}
			if more, err := out.add(ctx, &c.next, &rec); err != nil || !more {
				*stopped = err == nil
				return err
			}
		}
	}
	err := out.flush(ctx)
	*stopped = out.stopped
	return err
}

// Closings implements layout.Layout.
func (l *Layout) Closings(ctx context.Context, q driver.Querier) iter.Seq2[entity.Closing, error] {
	return func(yield func(entity.Closing, error) bool) {
		v, err := l.readView(ctx, q, entity.MaxBlock)
		if err != nil {
			yield(entity.Closing{}, err)
			return
		}
		stopped := false
		err = eachRow(ctx, q, l.sql["closings"], nil, func(rows driver.Rows) error {
			var block, from int64
			var key []byte
			if err := rows.Scan(&block, &key, &from); err != nil {
				return err
			}
			if len(key) != len(entity.Key{}) {
				return fmt.Errorf("%w: entity key of %d bytes", driver.ErrCorrupt, len(key))
			}
			if !yield(entity.Closing{Block: uint64(block), Key: entity.Key(key), From: uint64(from)}, nil) {
				stopped = true
				return errStopped
			}
			return nil
		})
		if stopped {
			return
		}
		if err != nil {
			yield(entity.Closing{}, err)
			return
		}
		for _, n := range v.nodes {
			for i := range n.changes {
				c := &n.changes[i]
				if c.oldID == 0 {
					continue
				}
				if !yield(entity.Closing{Block: uint64(n.block), Key: c.key, From: uint64(c.oldFrom)}, nil) {
					return
				}
			}
		}
	}
}

// Rows implements layout.Layout. It counts versions, wherever they are: how
// many of them are in which table depends on the merge.
func (l *Layout) Rows(ctx context.Context, q driver.Querier) ([]layout.TableRows, error) {
	v, err := l.readView(ctx, q, entity.MaxBlock)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, name := range []string{"count_current", "count_closed"} {
		rows, err := driver.QueryInt(ctx, q, l.sql[name])
		if err != nil {
			return nil, err
		}
		n += rows
	}
	for _, node := range v.nodes {
		for i := range node.changes {
			if node.changes[i].newID != 0 {
				n++
			}
		}
	}
	return []layout.TableRows{{Table: "versions", Rows: uint64(n)}}, nil
}
