package eav

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

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

// Versions implements layout.View. Each version is read by a separate
// statement, so that no engine holds the payloads of many.
func (v view) Versions(ctx context.Context, key entity.Key) iter.Seq2[entity.Version, error] {
	text := v.selectColumns(true) + ", e.to_block FROM payloads AS e WHERE e.entity_key = ? AND e.from_block <= ? ORDER BY e.from_block DESC LIMIT 1"
	return func(yield func(entity.Version, error) bool) {
		for at := int64(v.at); ; {
			var payload []byte
			var end int64
			var e *entity.Entity
			err := statement.Each(ctx, v.q, driver.Statement{Text: text}, []any{key[:], at}, func(rows driver.Rows) (err error) {
				e, err = scanEntity(rows, &payload, &end)
				return err
			})
			if err == nil && e == nil {
				return
			}
			found := entity.Version{Entity: e, End: uint64(end)}
			if err == nil {
				e.Content, at = payload, int64(e.LastModifiedAtBlock)-1
			}
			if !yield(found, err) || err != nil {
				return
			}
		}
	}
}

// Count implements layout.View.
func (v view) Count(ctx context.Context, e query.Expr) (uint64, error) {
	l, err := v.lead(ctx, e, false)
	if err != nil {
		return 0, err
	}
	c := v.compiler()
	c.write("SELECT count(*) FROM payloads AS e")
	c.where(e)
	c.led(l)
	s, args, err := c.finish()
	if err != nil {
		return 0, err
	}
	var n int64
	err = s.Row(ctx, v.q, args, &n)
	return uint64(n), err
}

// Query implements layout.View.
func (v view) Query(ctx context.Context, req layout.Request) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		list, found, err := v.newest(ctx, req)
		if err == nil && found {
			v.fetch(ctx, list, req.Content, yield)
			return
		}
		var s driver.Statement
		var args []any
		if err == nil {
			s, args, err = v.compileQuery(ctx, req)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		v.stream(ctx, s, args, req.Content, yield)
	}
}

// compileQuery returns the statement for a request.
func (v view) compileQuery(ctx context.Context, req layout.Request) (driver.Statement, []any, error) {
	l, err := v.lead(ctx, req.Expr, false)
	if err != nil {
		return driver.Statement{}, nil, err
	}
	c := v.compiler()
	c.query(req, l)
	return c.finish()
}

// stream yields the entities of a statement.
func (v view) stream(ctx context.Context, s driver.Statement, args []any, content bool, yield func(*entity.Entity, error) bool) {
	err := statement.Each(ctx, v.q, s, args, func(rows driver.Rows) error {
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
		stream := v.openings
		if v.dialect.BufferedResults {
			stream = v.pagedOpenings
		}
		stream(ctx, func(e *entity.Entity, err error) bool {
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

// opened reports whether version a comes before b in a history.
func opened(a, b *entity.Entity) bool {
	return cmp.Or(cmp.Compare(a.LastModifiedAtBlock, b.LastModifiedAtBlock), bytes.Compare(a.Key[:], b.Key[:])) < 0
}

// openings streams all versions by one statement.
func (v view) openings(ctx context.Context, yield func(*entity.Entity, error) bool) {
	v.stream(ctx, driver.Statement{Text: v.schema.Statements["openings"]}, nil, true, yield)
}

// Limits of pagedOpenings.
const (
	openingsPage = 1024 // row numbers that are sorted at once
	openingsRead = 256  // versions that are held at once
	openingsSpan = 32   // row numbers within which one statement reads
)

// pagedOpenings streams all versions page by page. DuckDB holds the whole
// result of a statement in memory, and 2,048 whole rows of a scanned table. So
// it sorts only the row numbers of a page first, and then reads adjacent rows
// together.
func (v view) pagedOpenings(ctx context.Context, yield func(*entity.Entity, error) bool) {
	next := "SELECT rowid, " + v.shape.from + ", entity_key FROM payloads WHERE " + v.shape.from + " >= ? AND (" +
		v.shape.from + " > ? OR entity_key > ?) ORDER BY " + v.shape.from + ", entity_key LIMIT CAST(? AS BIGINT)"
	block, key := int64(math.MinInt64), []byte{}
	for {
		var page []int64
		err := statement.Each(ctx, v.q, driver.Statement{Text: next}, []any{block, block, key, int64(openingsPage)}, func(rows driver.Rows) error {
			page = append(page, 0)
			return rows.Scan(&page[len(page)-1], &block, &key)
		})
		if err != nil {
			yield(nil, err)
		}
		if err != nil || len(page) == 0 {
			return
		}
		for part := range slices.Chunk(page, openingsRead) {
			found, err := v.rows(ctx, part)
			for _, id := range part {
				if !yield(found[id], err) || err != nil {
					return
				}
			}
		}
	}
}

// rows returns versions by their row numbers.
func (v view) rows(ctx context.Context, numbers []int64) (map[int64]*entity.Entity, error) {
	found := make(map[int64]*entity.Entity, len(numbers))
	text := v.selectColumns(true) + ", e.rowid FROM payloads AS e WHERE e.rowid BETWEEN ? AND ?"
	sorted := slices.Sorted(slices.Values(numbers))
	for first, i := 0, 1; i <= len(sorted); i++ {
		if i < len(sorted) && sorted[i] < sorted[first]+openingsSpan {
			continue
		}
		err := statement.Each(ctx, v.q, driver.Statement{Text: text}, []any{sorted[first], sorted[i-1]}, func(rows driver.Rows) error {
			var payload []byte
			var id int64
			e, err := scanEntity(rows, &payload, &id)
			if err == nil {
				e.Content, found[id] = payload, e
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		first = i
	}
	return found, nil
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
