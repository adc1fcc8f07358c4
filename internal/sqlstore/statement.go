package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// statement is a prepared statement of one connection.
type statement interface {
	exec(ctx context.Context, args []any) (int64, error)
	query(ctx context.Context, args []any) (resultSet, error)
	Close() error
}

// resultSet has the common methods of *sql.Rows and directRows.
type resultSet interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// pooled is a statement of database/sql.
type pooled struct{ *sql.Stmt }

func (s pooled) exec(ctx context.Context, args []any) (int64, error) {
	res, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s pooled) query(ctx context.Context, args []any) (resultSet, error) {
	return s.QueryContext(ctx, args...)
}

// direct is a statement on the driver's connection. A pinned connection needs
// no lock against other goroutines, no copies of scanned values, and no
// goroutine for each query that can be cancelled. Without these, which
// database/sql adds, a read of twenty events takes a tenth less processor time.
type direct struct {
	stmt sqldriver.Stmt
	args []sqldriver.NamedValue // scratch
}

// prepareDirect prepares a statement on a driver's connection.
func prepareDirect(ctx context.Context, native any, text string) (*direct, error) {
	conn, ok := native.(sqldriver.ConnPrepareContext)
	if !ok {
		return nil, fmt.Errorf("driver connection %T: no PrepareContext", native)
	}
	stmt, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return &direct{stmt: stmt}, nil
}

func (s *direct) exec(ctx context.Context, args []any) (int64, error) {
	named, err := s.bind(ctx, args)
	if err != nil {
		return 0, err
	}
	defer clear(named)
	res, err := s.stmt.(sqldriver.StmtExecContext).ExecContext(ctx, named)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s *direct) query(ctx context.Context, args []any) (resultSet, error) {
	named, err := s.bind(ctx, args)
	if err != nil {
		return nil, err
	}
	defer clear(named)
	rows, err := s.stmt.(sqldriver.StmtQueryContext).QueryContext(ctx, named)
	if err != nil {
		return nil, err
	}
	return DriverRows(ctx, rows), nil
}

// bind converts arguments to driver values, as database/sql does.
func (s *direct) bind(ctx context.Context, args []any) ([]sqldriver.NamedValue, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if want := s.stmt.NumInput(); want >= 0 && want != len(args) {
		return nil, fmt.Errorf("expected %d arguments, got %d", want, len(args))
	}
	s.args = s.args[:0]
	for i, a := range args {
		switch a.(type) {
		case int64, string, []byte:
		default:
			var err error
			if a, err = sqldriver.DefaultParameterConverter.ConvertValue(a); err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		s.args = append(s.args, sqldriver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s.args, nil
}

// Close implements statement.
func (s *direct) Close() error { return s.stmt.Close() }

// directRows is the result of a direct statement. The driver must allocate each
// value.
type directRows struct {
	ctx    context.Context // checked between rows, because not every driver does
	rows   sqldriver.Rows
	values []sqldriver.Value
	err    error
	closed bool
}

// Next implements resultSet.
func (r *directRows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	err := r.ctx.Err()
	if err == nil {
		err = r.rows.Next(r.values)
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			r.err = err
		}
		r.err = errors.Join(r.err, r.Close())
		return false
	}
	return true
}

// Scan implements resultSet.
func (r *directRows) Scan(dest ...any) error {
	if len(dest) != len(r.values) {
		return fmt.Errorf("expected %d destination arguments in Scan, not %d", len(r.values), len(dest))
	}
	for i, d := range dest {
		if err := assign(d, r.values[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// assign scans one value: a type of package driver directly, others by the
// rules of database/sql.
func assign(dest any, src sqldriver.Value) error {
	switch d := dest.(type) {
	case *int64:
		if v, ok := src.(int64); ok {
			*d = v
			return nil
		}
		return convert(d, src)
	case *[]byte:
		switch v := src.(type) {
		case []byte:
			if *d = v; v == nil { // NULL is no []byte: some drivers give this for an empty one
				*d = []byte{}
			}
		case string:
			*d = []byte(v)
		case nil:
			*d = nil
		default:
			return convert(d, src)
		}
		return nil
	case *string:
		if v, ok := src.(string); ok {
			*d = v
			return nil
		}
		return convert(d, src)
	case *bool:
		return convert(d, src)
	case sql.Scanner:
		return d.Scan(src)
	}
	return fmt.Errorf("cannot scan into %T", dest)
}

// convert scans as database/sql does.
func convert[T any](dest *T, src sqldriver.Value) error {
	var n sql.Null[T]
	if err := n.Scan(src); err != nil {
		return err
	}
	if !n.Valid {
		return fmt.Errorf("converting NULL to %T is unsupported", *dest)
	}
	*dest = n.V
	return nil
}

// Err implements resultSet.
func (r *directRows) Err() error { return r.err }

// Close implements resultSet.
func (r *directRows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	return r.rows.Close()
}

// Rows is a result whose values are decoded by the connection's codec.
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

// Codec translates values and placeholders between package driver and a native
// engine.
type Codec interface {
	// Encode converts an argument into a value that the engine's database/sql
	// driver binds.
	Encode(arg any) any
	// DecodeUint is the inverse of Encode for a uint64.
	DecodeUint(src any) (uint64, error)
	// Rebind rewrites the "?" placeholders of a statement.
	Rebind(sql string) string
}

// OrderedBlob is the codec of engines with signed integers and dynamic types
// (SQLite): a Uint is an integer up to 2⁶³−1 and a big-endian 8-byte BLOB above
// it. A BLOB sorts after every integer, so the order is that of uint64, and
// values in practical use stay plain integers that other tools can read.
type OrderedBlob struct{}

// Encode implements Codec.
func (OrderedBlob) Encode(arg any) any {
	n, ok := arg.(uint64)
	switch {
	case !ok:
		return arg
	case n <= math.MaxInt64:
		return int64(n)
	}
	return binary.BigEndian.AppendUint64(nil, n)
}

// DecodeUint implements Codec.
func (OrderedBlob) DecodeUint(src any) (uint64, error) {
	switch v := src.(type) {
	case int64:
		if v >= 0 {
			return uint64(v), nil
		}
	case []byte:
		if len(v) == 8 {
			return binary.BigEndian.Uint64(v), nil
		}
	}
	return 0, fmt.Errorf("not an unsigned integer: %T %v", src, src)
}

// Rebind implements Codec.
func (OrderedBlob) Rebind(sql string) string { return sql }

// Biased is the codec of engines with signed 64-bit integers only (Postgres): a
// Uint n is stored as n − 2⁶³, which keeps the order.
type Biased struct{}

// Encode implements Codec.
func (Biased) Encode(arg any) any {
	if n, ok := arg.(uint64); ok {
		return int64(n ^ 1<<63)
	}
	return arg
}

// DecodeUint implements Codec.
func (Biased) DecodeUint(src any) (uint64, error) {
	if v, ok := src.(int64); ok {
		return uint64(v) ^ 1<<63, nil
	}
	return 0, fmt.Errorf("not a 64-bit integer: %T %v", src, src)
}

// Rebind numbers the placeholders: "?" becomes "$1", "$2", ….
func (Biased) Rebind(sql string) string {
	if !strings.Contains(sql, "?") {
		return sql
	}
	var b strings.Builder
	n, quoted := 0, false
	for i := range len(sql) {
		switch c := sql[i]; {
		case c == '\'':
			quoted = !quoted
			b.WriteByte(c)
		case c == '?' && !quoted:
			n++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
