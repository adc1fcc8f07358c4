package eav

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Prior implements layout.Writer.
func (w writer) Prior(ctx context.Context, at uint64, needs map[entity.Key]entity.Need) (map[entity.Key]entity.Prior, error) {
	// Read the live versions.
	all := make([]any, 0, len(needs))
	for key := range needs {
		all = append(all, key[:])
	}
	prior := make(map[entity.Key]entity.Prior, len(needs))
	err := w.sql.EachIn(ctx, w.tx, "live", all, []any{int64(at)}, func(rows driver.Rows) error {
		e, err := scanEntity(rows)
		if err == nil {
			prior[e.Key] = entity.Prior{Live: e}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read live versions: %w", err)
	}

	// Read the payloads that the block keeps.
	var content, ends []any
	for key, need := range needs {
		live := prior[key].Live != nil
		if need&entity.NeedContent != 0 && live {
			content = append(content, key[:])
		}
		if need&entity.NeedEnd != 0 && !live {
			ends = append(ends, key[:])
		}
	}
	err = w.sql.EachIn(ctx, w.tx, "content", content, []any{int64(at)}, func(rows driver.Rows) error {
		var key, content []byte
		if err := rows.Scan(&key, &content); err != nil {
			return err
		}
		if p := prior[entity.Key(key)]; p.Live != nil {
			p.Live.Content = content
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read payloads: %w", err)
	}

	// Find the keys whose last versions expired by themselves.
	last := make(map[entity.Key]int64, len(ends))
	err = w.sql.EachIn(ctx, w.tx, "ends", ends, nil, func(rows driver.Rows) error {
		var key, numbers []byte
		var from, to int64
		if err := rows.Scan(&key, &from, &to, &numbers); err != nil {
			return err
		}
		k := entity.Key(key)
		if before, ok := last[k]; ok && before > from {
			return nil
		}
		last[k] = from
		expiration, trace, err := decodeEnd(numbers)
		prior[k] = entity.Prior{Expired: uint64(to) == expiration && !trace}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read ended versions: %w", err)
	}
	return prior, nil
}

// scanEntity scans the columns entity_key, from_block, content type and the two
// JSON objects, and then into dest.
func scanEntity(rows driver.Rows, dest ...any) (*entity.Entity, error) {
	var key, contentType, texts, numbers []byte
	var from int64
	if err := rows.Scan(append([]any{&key, &from, &contentType, &texts, &numbers}, dest...)...); err != nil {
		return nil, err
	}
	if len(key) != len(entity.Key{}) {
		return nil, fmt.Errorf("%w: entity key of %d bytes", driver.ErrCorrupt, len(key))
	}
	e := &entity.Entity{Key: entity.Key(key), LastModifiedAtBlock: uint64(from), ContentType: string(contentType)}
	if err := decodeAttributes(e, texts, numbers); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrCorrupt, err)
	}
	return e, nil
}
