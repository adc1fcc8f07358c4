package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// merge walks the versions of an Arkiv database twice at once: by the block
// that opened them and by the block that ended them.
type merge struct {
	readers  []driver.Reader
	versions versions
	endings  endings
	last     uint64 // the last block that Arkiv followed
	any      bool   // there is one
}

// stream yields the changesets. It tells whether the caller stopped it.
func (m *merge) stream(ctx context.Context, yield func(entity.Changeset, error) bool) (stopped bool, err error) {
	if err := errors.Join(m.versions.next(), m.endings.next()); err != nil {
		return false, err
	}
	var done uint64
	yielded := false
	for m.versions.ok || m.endings.ok {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		set, err := m.block()
		if err != nil {
			return false, err
		}
		if !yield(set, nil) {
			return true, nil
		}
		done, yielded = set.Block, true
	}
	if m.any && (!yielded || m.last > done) {
		return !yield(entity.Changeset{Block: m.last}, nil), nil
	}
	return false, nil
}

// block collects the changes of the lowest block that either cursor is at.
// Both are ordered by key within a block.
func (m *merge) block() (entity.Changeset, error) {
	v, e := &m.versions, &m.endings
	block := v.from
	if !v.ok || e.ok && e.to < block {
		block = e.to
	}
	set := entity.Changeset{Block: block}
	for {
		opens, ends := v.ok && v.from == block, e.ok && e.to == block
		if !opens && !ends {
			return set, nil
		}
		if opens && ends {
			order := bytes.Compare(v.entity.Key[:], e.key[:])
			opens, ends = order <= 0, order >= 0
		}
		var c entity.Change
		if opens {
			c.Key, c.New = v.entity.Key, v.entity
			if err := v.next(); err != nil {
				return set, err
			}
		}
		if ends {
			c.Key, c.Old = e.key, &entity.Entity{Key: e.key, LastModifiedAtBlock: e.from}
			if err := e.next(); err != nil {
				return set, err
			}
		}
		set.Changes = append(set.Changes, c)
	}
}

func (m *merge) close() error {
	err := errors.Join(m.versions.close(), m.endings.close())
	for _, r := range m.readers {
		err = errors.Join(err, r.Close())
	}
	m.readers = nil
	return err
}

// cursor is an open query over payloads.
type cursor struct {
	rows driver.Rows
	nth  int  // of the current row, from 1
	ok   bool // there is a current row
	json scanner
}

func (c *cursor) open(ctx context.Context, q driver.Querier, sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("table payloads: %w", err)
	}
	c.rows = rows
	return nil
}

// scan reads the next row, if there is one.
func (c *cursor) scan(dest ...any) error {
	c.nth++
	if c.ok = c.rows.Next(); !c.ok {
		if err := c.rows.Err(); err != nil {
			return fmt.Errorf("table payloads: %w", err)
		}
		return nil
	}
	if err := c.rows.Scan(dest...); err != nil {
		return fmt.Errorf("table payloads: row %d in block order: %w", c.nth, err)
	}
	return nil
}

func (c *cursor) close() error {
	if c.rows == nil {
		return nil
	}
	return c.rows.Close()
}

// versions walks the versions that were visible, or would be if they had a
// lifetime, by opening block.
type versions struct {
	cursor
	last uint64 // no version may be above it
	row  versionRow

	from   uint64
	entity *entity.Entity
}

func (v *versions) next() error {
	for {
		r := &v.row
		*r = versionRow{}
		err := v.scan(&r.key, &r.from, &r.to, &r.previousTo, &r.payload, &r.contentType, &r.strings, &r.numbers)
		if err != nil || !v.ok {
			return err
		}
		e, err := r.entity(&v.json, v.last)
		if err != nil {
			return rowError(r.key, r.from, err)
		}
		// Ended in the block that opened it, before its lifetime was over:
		// nobody ever saw it, and its block did nothing to the entity.
		if r.to == r.from && e.Expiration > uint64(r.to) {
			continue
		}
		v.from, v.entity = uint64(r.from), e
		return nil
	}
}

// endings walks the versions that ended before their lifetime was over.
type endings struct {
	cursor
	key      entity.Key
	from, to uint64
}

func (e *endings) next() error {
	for {
		var key, numbers []byte
		var from, to int64
		if err := e.scan(&key, &from, &to, &numbers); err != nil || !e.ok {
			return err
		}
		expiration, err := expirationOf(&e.json, numbers)
		if err == nil && (len(key) != len(e.key) || from < 0) {
			err = malformed("no 32-byte key or a negative block")
		}
		if err != nil {
			return rowError(key, from, err)
		}
		if uint64(to) < expiration {
			e.key, e.from, e.to = entity.Key(key), uint64(from), uint64(to)
			return nil
		}
	}
}

func rowError(key []byte, from int64, err error) error {
	return malformed("table payloads: entity_key 0x%x, from_block %d: %w", key, from, err)
}
