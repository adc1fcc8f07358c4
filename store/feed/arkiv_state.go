package feed

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// entities streams the entities of a database of sqlite-bitmap-store, by the
// block that changed each entity last, then by key.
func entities(ctx context.Context, q driver.Querier, last uint64) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		count, err := driver.QueryInt(ctx, q, countSQL)
		if err != nil {
			yield(nil, fmt.Errorf("table payloads: %w", err))
			return
		}
		reader := stateReader{last: last}
		for e, err := range payloads(ctx, q, stateSQL, nil, reader.next) {
			if !yield(e, err) || err != nil {
				return
			}
			count--
		}
		if count != 0 {
			yield(nil, malformed("table payloads: %d rows that its index has were not found; it is damaged", count))
		}
	}
}

// stateReader converts rows of table payloads into entities.
type stateReader struct {
	last   uint64         // block of the database
	before *entity.Entity // the row before
}

func (s *stateReader) next(rows driver.Rows) (*entity.Entity, bool, error) {
	var r row
	if err := rows.Scan(&r.key, &r.payload, &r.contentType, &r.strings, &r.numbers); err != nil {
		return nil, false, err
	}
	e, err := r.entity(s.last)
	if err != nil {
		return nil, false, malformed("entity_key 0x%x: %w", r.key, err)
	}
	if s.before != nil && compareChange(s.before, e) >= 0 {
		return nil, false, fmt.Errorf("the engine gives %s of block %d before %s of block %d, against the order asked for",
			s.before.Key, s.before.LastModifiedAtBlock, e.Key, e.LastModifiedAtBlock)
	}
	s.before = e
	return e, true, nil
}

func compareChange(a, b *entity.Entity) int {
	return cmp.Or(cmp.Compare(a.LastModifiedAtBlock, b.LastModifiedAtBlock), bytes.Compare(a.Key[:], b.Key[:]))
}

// entity checks a row of sqlite-bitmap-store and converts it.
func (r *row) entity(last uint64) (*entity.Entity, error) {
	if len(r.key) != len(entity.Key{}) {
		return nil, r.keyError()
	}
	e, err := r.read(true)
	if err != nil {
		return nil, err
	}
	e.LastModifiedAtBlock = take(e.NumericAttributes, entity.AttrLastModifiedAtBlock, &err)
	if err != nil {
		return nil, err
	}
	if e.LastModifiedAtBlock > last {
		return nil, fmt.Errorf("attribute %s is %d, above the last block %d", entity.AttrLastModifiedAtBlock, e.LastModifiedAtBlock, last)
	}
	if err := synthetic(e); err != nil {
		return nil, err
	}
	return e, validate(e)
}
