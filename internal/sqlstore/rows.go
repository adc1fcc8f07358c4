package sqlstore

import (
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// Rows is a result whose values go through the connection's codec.
type Rows struct {
	rows  resultSet
	conn  *Conn
	dests []any      // scratch for Scan
	uints []uintDest // scratch for Scan
	guard *Reader    // the snapshot the rows belong to, or nil
	err   error      // why the snapshot ended under the rows
}

// uintDest scans a Uint through the codec.
type uintDest struct {
	dst   *uint64
	codec Codec
}

// Scan implements sql.Scanner.
func (u *uintDest) Scan(src any) (err error) {
	*u.dst, err = u.codec.DecodeUint(src)
	return err
}

// Next implements driver.Rows.
func (r *Rows) Next() bool {
	if r.guard == nil {
		return r.rows.Next()
	}
	r.guard.mu.Lock()
	defer r.guard.mu.Unlock()
	return r.err == nil && r.rows.Next()
}

// Scan implements driver.Rows.
func (r *Rows) Scan(dest ...any) error {
	if r.guard != nil {
		r.guard.mu.Lock()
		defer r.guard.mu.Unlock()
	}
	if r.err != nil {
		return r.err
	}
	r.dests = append(r.dests[:0], dest...)
	if r.uints == nil {
		r.uints = make([]uintDest, 0, len(dest))
	}
	r.uints = r.uints[:0]
	for i, d := range dest {
		if dst, ok := d.(*uint64); ok {
			r.uints = append(r.uints, uintDest{dst: dst, codec: r.conn.codec})
			r.dests[i] = &r.uints[len(r.uints)-1]
		}
	}
	err := r.rows.Scan(r.dests...)
	switch {
	case err == nil:
		return nil
	case r.rows.Err() != nil: // the rows ended under the caller
		return r.conn.fail(err)
	}
	return fmt.Errorf("%w: a value is not of its column's type: %w", driver.ErrCorrupt, err)
}

// Err implements driver.Rows.
func (r *Rows) Err() error {
	if r.guard != nil {
		r.guard.mu.Lock()
		defer r.guard.mu.Unlock()
	}
	if r.err != nil {
		return r.err
	}
	if err := r.rows.Err(); err != nil {
		return r.conn.fail(err)
	}
	return nil
}

// Close implements driver.Rows.
func (r *Rows) Close() error {
	if r.guard != nil {
		r.guard.mu.Lock()
		defer r.guard.mu.Unlock()
		if r.guard.rows == r {
			r.guard.rows = nil
		}
	}
	return r.rows.Close()
}

var _ driver.Rows = (*Rows)(nil)
