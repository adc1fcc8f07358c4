package eav

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Get implements layout.View.
func (v view) Get(ctx context.Context, key entity.Key) (*entity.Entity, error) {
	args := []any{key[:], int64(v.at)}
	if v.schema.Temporal {
		args = append(args, int64(v.at))
	}
	var from int64
	var content, contentType, texts, numbers []byte
	err := v.sql.Row(ctx, v.q, "get", args, &from, &content, &contentType, &texts, &numbers)
	if errors.Is(err, driver.ErrNoRows) {
		return nil, entity.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	e := &entity.Entity{Key: key, LastModifiedAtBlock: uint64(from), ContentType: string(contentType), Content: content}
	if err := decodeAttributes(e, texts, numbers); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrCorrupt, err)
	}
	return e, nil
}

// Count implements layout.View.
func (v view) Count(ctx context.Context, e query.Expr) (uint64, error) {
	cond, err := v.prepare(ctx, v.q, e)
	if err != nil {
		return 0, err
	}
	c := compiler{l: v.Layout, at: int64(v.at)}
	c.write("SELECT count(*) FROM payloads AS p")
	c.where(cond)
	text, args, err := c.finish()
	if err != nil {
		return 0, err
	}
	n, err := driver.QueryInt(ctx, v.q, text, args...)
	return uint64(n), err
}

// Query implements layout.View.
func (v view) Query(ctx context.Context, req layout.Request) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		list, walked, err := v.newest(ctx, req)
		if err == nil && walked && req.Content {
			v.fetch(ctx, list, yield)
			return
		}
		if err == nil && walked {
			for _, e := range list {
				if !yield(e.Entity, nil) {
					return
				}
			}
			return
		}
		var text string
		var args []any
		if err == nil {
			text, args, err = v.compileQuery(ctx, req)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		v.stream(ctx, text, args, req.Content, yield)
	}
}

// compileQuery returns the statement for a request. With a limit, the keys are
// found and sorted first and the rows fetched after, so that payloads do not
// travel through the sort.
func (v view) compileQuery(ctx context.Context, req layout.Request) (string, []any, error) {
	l := v.Layout
	cond, err := l.prepare(ctx, v.q, req.Expr)
	if err != nil {
		return "", nil, err
	}
	c := compiler{l: l, at: int64(v.at)}
	if one(cond) && req.After == nil { // there is nothing to sort
		c.write(l.selectColumns("p", req.Content) + " FROM payloads AS p")
		c.where(cond)
		return c.finish()
	}
	first, err := l.first(ctx, v.q, cond, req)
	if err != nil {
		return "", nil, err
	}
	from, inner := l.shape.from, c.inner(req.Order)
	if req.Limit > 0 {
		c.write(l.selectColumns("q", req.Content) + " FROM (SELECT p.entity_key AS k, p." + from + " AS f, s.value AS s")
		for i, column := range inner.values {
			c.write(", " + column + " AS v" + strconv.Itoa(i))
		}
	} else {
		c.write(l.selectColumns("p", req.Content))
	}
	c.writeFrom(req.Order, first)
	c.where(cond)
	c.writeAfter(req.Order, inner, req.After)
	c.writeOrder(req.Order, inner)
	if req.Limit > 0 {
		c.write(" LIMIT ?) AS x JOIN payloads AS q ON q.entity_key = x.k AND q."+from+" = x.f", int64(req.Limit))
		c.writeOrder(req.Order, outer(req.Order))
	}
	return c.finish()
}

// one tells whether no more than one entity can meet a condition.
func one(n node) bool {
	switch n := n.(type) {
	case version:
		return n.byKey && len(n.args) == 1
	case conjunction:
		return slices.ContainsFunc(n, one)
	case driven:
		return one(n.driver)
	}
	return false
}

// selectColumns returns SELECT with the columns that scanEntity reads.
func (l *Layout) selectColumns(table string, content bool) string {
	d := l.dialect
	text := "SELECT " + table + ".entity_key, " + table + "." + l.shape.from + ", " +
		d.text(table+".content_type") + ", " + d.text(table+".string_attributes") + ", " + d.text(table+".numeric_attributes")
	if content {
		text += ", " + table + ".payload"
	}
	return text
}

// stream yields the entities of a statement.
func (v view) stream(ctx context.Context, text string, args []any, content bool, yield func(*entity.Entity, error) bool) {
	err := statement.Each(ctx, v.q, text, args, func(rows driver.Rows) error {
		var payload []byte
		var dest []any
		if content {
			dest = []any{&payload}
		}
		e, err := scanEntity(rows, dest...)
		if err != nil {
			return err
		}
		if e.Content = payload; !yield(e, nil) {
			return statement.ErrEnough
		}
		return nil
	})
	if err != nil {
		yield(nil, err)
	}
}

// Openings implements layout.View.
func (v view) Openings(ctx context.Context) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		var last *entity.Entity
		v.stream(ctx, v.openings(), nil, true, func(e *entity.Entity, err error) bool {
			if err == nil && last != nil && opened(e, last) {
				yield(nil, fmt.Errorf("%w: versions out of order: %s of block %d after %s of block %d",
					driver.ErrCorrupt, e.Key, e.LastModifiedAtBlock, last.Key, last.LastModifiedAtBlock))
				return false
			}
			last = e
			return yield(e, err)
		})
	}
}

// opened tells whether version a comes before b in a history.
func opened(a, b *entity.Entity) bool {
	return cmp.Or(cmp.Compare(a.LastModifiedAtBlock, b.LastModifiedAtBlock), bytes.Compare(a.Key[:], b.Key[:])) < 0
}

// openings returns the statement of Openings. SQLite would move all payloads
// through a sort in a temporary file as large as they are, so there the rows are
// sorted without them and fetched in the order of the first table of the join,
// which the caller checks.
func (l *Layout) openings() string {
	if !l.dialect.rowid {
		return l.schema.Statements["openings"]
	}
	return l.selectColumns("q", true) + " FROM (SELECT rowid AS id FROM payloads ORDER BY " + l.shape.from + ", entity_key LIMIT -1) AS x" +
		" CROSS JOIN payloads AS q ON q.rowid = x.id"
}

// Closings implements layout.View.
func (v view) Closings(ctx context.Context) iter.Seq2[entity.Closing, error] {
	return v.closings(ctx, "closings")
}

// ClosingsBetween implements layout.View.
func (v view) ClosingsBetween(ctx context.Context, from, to uint64) iter.Seq2[entity.Closing, error] {
	return v.closings(ctx, "closings_between", int64(from), int64(to))
}

func (v view) closings(ctx context.Context, name string, args ...any) iter.Seq2[entity.Closing, error] {
	return func(yield func(entity.Closing, error) bool) {
		if !v.schema.Temporal {
			return
		}
		err := v.sql.Each(ctx, v.q, name, args, func(rows driver.Rows) error {
			var block, from int64
			var key, numbers []byte
			err := rows.Scan(&block, &key, &from, &numbers)
			if err == nil && len(key) != len(entity.Key{}) {
				err = fmt.Errorf("%w: entity key of %d bytes", driver.ErrCorrupt, len(key))
			}
			var expiration uint64
			if err == nil {
				expiration, _, err = decodeEnd(numbers)
			}
			if err != nil || uint64(block) >= expiration {
				return err
			}
			if !yield(entity.Closing{Block: uint64(block), Key: entity.Key(key), From: uint64(from)}, nil) {
				return statement.ErrEnough
			}
			return nil
		})
		if err != nil {
			yield(entity.Closing{}, err)
		}
	}
}
