package feed

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// openings streams the versions by the block that opened them.
func openings(ctx context.Context, q driver.Querier, last uint64) iter.Seq2[*entity.Entity, error] {
	return payloads(ctx, q, versionsSQL, nil, func(rows driver.Rows) (*entity.Entity, bool, error) {
		var r versionRow
		err := rows.Scan(&r.key, &r.from, &r.to, &r.previousTo, &r.payload, &r.contentType, &r.strings, &r.numbers)
		if err != nil {
			return nil, false, err
		}
		e, err := r.entity(last)
		if err != nil {
			return nil, false, rowError(r.key, r.from, err)
		}
		// A version that ended before its expiration in the block that opened
		// it was never visible, so it is no change of that block.
		hidden := r.to == r.from && e.Expiration > uint64(r.to)
		return e, !hidden, nil
	})
}

// closings streams the versions that ended before their lifetime was over, by
// the block that ended them.
func closings(ctx context.Context, q driver.Querier, last uint64) iter.Seq2[entity.Closing, error] {
	args := []any{int64(last)}
	return payloads(ctx, q, endingsSQL, args, func(rows driver.Rows) (c entity.Closing, ok bool, err error) {
		var key, numbers []byte
		var from, to int64
		if err := rows.Scan(&key, &from, &to, &numbers); err != nil {
			return c, false, err
		}
		expiration, err := expirationOf(numbers)
		if err == nil && (len(key) != len(c.Key) || from < 0) {
			err = errors.New("the key has not 32 bytes, or the block is negative")
		}
		if err != nil {
			return c, false, rowError(key, from, err)
		}
		c = entity.Closing{Block: uint64(to), Key: entity.Key(key), From: uint64(from)}
		return c, c.Block < expiration, nil
	})
}

func rowError(key []byte, from int64, err error) error {
	return malformed("entity_key 0x%x, from_block %d: %w", key, from, err)
}

// payloads streams the results of read for the rows of a query on that table,
// except those for which it returns false.
func payloads[T any](
	ctx context.Context, q driver.Querier, sql string, args []any,
	read func(driver.Rows) (T, bool, error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := false
		err := eachRow(ctx, q, sql, args, read, func(v T) bool {
			stopped = !yield(v, nil)
			return !stopped
		})
		if err != nil && !stopped {
			var none T
			yield(none, fmt.Errorf("table payloads: %w", err))
		}
	}
}

// eachRow reads rows until yield returns false.
func eachRow[T any](
	ctx context.Context, q driver.Querier, sql string, args []any,
	read func(driver.Rows) (T, bool, error), yield func(T) bool,
) (err error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for n := 1; rows.Next(); n++ {
		v, ok, err := read(rows)
		switch {
		case err != nil && !errors.Is(err, ErrFormat):
			return fmt.Errorf("row %d in block order: %w", n, err)
		case err != nil:
			return err
		case ok && !yield(v):
			return nil
		}
	}
	return rows.Err()
}
