package postgres

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// maxKept bounds the prepared statements of one connection; see sqlstore.Conn.
const maxKept = 512

// remote implements sqlstore.Remote on pgx's own connection, because it does
// not wait where it need not: a BEGIN travels with the next statement, and the
// answer to a ROLLBACK is read when the connection is used again.
type remote struct {
	conn        *pgx.Conn
	queue       []message                 // to be sent before the next statement, with it
	queuedBytes int                       // about
	expected    []message                 // queries to be sent after the next statement, with it
	prefetched  []*answer                 // to expected queries that were not run yet
	rollback    *pgconn.MultiResultReader // the answer to a ROLLBACK, or nil
	open        *rows                     // the unread result, or nil
	build       message                   // scratch
	custom      bool                      // plans of the rest of the transaction are custom ones
	ended       bool                      // the transaction ended with a query that had the hint Final
	kept        map[string]*pgconn.StatementDescription
}

// customPlans has the statements of a transaction planned for their arguments, where the
// server knows how. A prepared statement's sixth run may get a generic plan, which saves
// half of the time of a read by key; but of a query for a common and a rare attribute that
// took 1.6 s where the plan for the values takes 2 ms.
const customPlans = "SELECT set_config('plan_cache_mode', 'force_custom_plan', true) WHERE current_setting('plan_cache_mode', true) IS NOT NULL"

func newRemote(native any) sqlstore.Remote {
	return &remote{conn: native.(*stdlib.Conn).Conn(), kept: map[string]*pgconn.StatementDescription{}}
}

// guarded runs f unless the context is done already, for which pgx would give the connection
// up, and adds the context's own error.
func guarded(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return withContext(ctx, f())
}

// Exec implements sqlstore.Remote.
func (r *remote) Exec(ctx context.Context, text string, keep bool, args []any) (n int64, err error) {
	err = guarded(ctx, func() (err error) {
		n, err = r.exec(ctx, text, keep, args)
		return err
	})
	if code(err) == codeRefused && strings.HasPrefix(text, "CREATE TABLE ") {
		err = fmt.Errorf("%w: a new store needs CREATE ON SCHEMA, which only up to Postgres 14 everybody had on public; "+
			"or name a schema of this user's by the parameter %s", err, paramSchema)
	}
	return n, err
}

func (r *remote) exec(ctx context.Context, text string, keep bool, args []any) (int64, error) {
	r.prefetched = nil
	if !keep && len(args) == 0 && len(r.queue) == 0 {
		return 0, r.script(ctx, text)
	}
	rows, err := r.send(ctx, driver.Statement{Text: text}, keep, args)
	if err != nil {
		return 0, err
	}
	err = rows.Close()
	return rows.tag.RowsAffected(), err
}

// script runs several statements.
func (r *remote) script(ctx context.Context, text string) error {
	if err := r.drain(); err != nil {
		return err
	}
	return r.conn.PgConn().Exec(ctx, text).Close()
}

// Query implements sqlstore.Remote. It reads the first row, so that it returns
// the query's error itself.
func (r *remote) Query(ctx context.Context, s driver.Statement, keep bool, args []any) (rows driver.Rows, err error) {
	err = guarded(ctx, func() (err error) {
		rows, err = r.query(ctx, s, keep, args)
		return err
	})
	return rows, err
}

func (r *remote) query(ctx context.Context, s driver.Statement, keep bool, args []any) (driver.Rows, error) {
	if a := r.answerTo(s.Text, args); a != nil {
		return a, nil
	}
	r.expected = slices.DeleteFunc(r.expected, func(m message) bool { return m.answer.to(s.Text, args) })
	rows, err := r.send(ctx, s, keep, args)
	if err != nil {
		return nil, err
	}
	if rows.firstRead = rows.read(); rows.err != nil {
		return nil, rows.err
	}
	return rows, nil
}

// Rollback implements sqlstore.Remote.
func (r *remote) Rollback() error {
	r.clearQueue()
	r.prefetched, r.ended = nil, false
	if err := r.drain(); err != nil {
		return err
	}
	if r.conn.PgConn().TxStatus() == 'I' { // it was never begun, or has ended
		return nil
	}
	r.rollback = r.conn.PgConn().Exec(context.Background(), "ROLLBACK")
	return nil
}

// drain reads the outstanding answers.
func (r *remote) drain() error {
	if r.open != nil {
		_ = r.open.Close() // its error was the reader's to see
	}
	if r.rollback == nil {
		return nil
	}
	err := r.rollback.Close()
	r.rollback = nil
	return err
}

// send sends one statement, with the queue, and reads the answers up to its rows.
func (r *remote) send(ctx context.Context, s driver.Statement, keep bool, args []any) (*rows, error) {
	if err := r.drain(); err != nil {
		return nil, err
	}
	if r.ended {
		return nil, errors.New("a query after the view's final one")
	}
	m, err := r.pack(ctx, s, keep, args)
	if err != nil {
		return nil, err
	}
	r.open = &rows{remote: r, types: r.conn.TypeMap()}
	r.ended = s.Final
	if len(r.queue) == 0 && len(r.expected) == 0 && !r.ended {
		r.open.result = r.single(ctx, m)
		return r.open, nil
	}
	if err := r.sendAll(ctx, m); err != nil {
		_ = r.open.Close()
		return nil, err
	}
	return r.open, nil
}

func (r *remote) single(ctx context.Context, m *message) *pgconn.ResultReader {
	c, b := r.conn.PgConn(), &m.build
	if m.prepared == nil {
		return c.ExecParams(ctx, m.text, b.ParamValues, nil, b.ParamFormats, b.ResultFormats)
	}
	return c.ExecStatement(ctx, m.prepared, b.ParamValues, b.ParamFormats, b.ResultFormats)
}

// prepare returns a prepared statement.
func (r *remote) prepare(ctx context.Context, text string) (*pgconn.StatementDescription, error) {
	if prepared, ok := r.kept[text]; ok {
		return prepared, nil
	}
	if err := r.drain(); err != nil {
		return nil, err
	}
	if len(r.kept) >= maxKept {
		if err := r.Flush(ctx); err != nil { // there may be some of them in it
			return nil, err
		}
		r.expected = nil // they may be of them too; they are sent when they are run
		clear(r.kept)
		if err := r.conn.DeallocateAll(ctx); err != nil {
			return nil, err
		}
	}
	prepared, err := r.conn.Prepare(ctx, text, text)
	if err == nil {
		r.kept[text] = prepared
	}
	return prepared, err
}

// rows is the result of a statement.
type rows struct {
	remote    *remote
	types     *pgtype.Map
	pipeline  *pgconn.Pipeline     // or nil
	expected  []message            // whose answers come after these rows
	result    *pgconn.ResultReader // nil once closed
	firstRead bool                 // the first row has been read and not asked for
	fields    []pgconn.FieldDescription
	tag       pgconn.CommandTag
	err       error
}

// next goes to the next result of a pipeline.
func (s *rows) next() error {
	got, err := s.pipeline.GetResults()
	if err != nil {
		return err
	}
	result, ok := got.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("the server answered a statement by %T", got)
	}
	s.result = result
	return nil
}

// readExpected reads the answer to an expected query.
func (s *rows) readExpected(m *message) error {
	if err := s.next(); err != nil {
		return err
	}
	m.answer.read(s.result)
	_, err := s.result.Close()
	if err == nil {
		s.remote.prefetched = append(s.remote.prefetched, m.answer)
	}
	return err
}

// Next implements driver.Rows.
func (s *rows) Next() bool {
	if s.firstRead {
		s.firstRead = false
		return true
	}
	return s.read()
}

func (s *rows) read() bool {
	if s.result != nil && s.result.NextRow() {
		return true
	}
	_ = s.Close() // see Err
	return false
}

// Scan implements driver.Rows. The contract's types are known here; the rest is pgx's.
func (s *rows) Scan(dest ...any) error {
	if s.result == nil {
		return sql.ErrNoRows
	}
	values := s.result.Values()
	if s.fields == nil {
		s.fields = s.result.FieldDescriptions()
	}
	return scan(s.types, s.fields, values, dest)
}

func scan(types *pgtype.Map, fields []pgconn.FieldDescription, values [][]byte, dest []any) error {
	if len(dest) != len(values) {
		return fmt.Errorf("expected %d destination arguments in Scan, not %d", len(values), len(dest))
	}
	for i, d := range dest {
		if err := assign(types, d, &fields[i], values[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

func assign(types *pgtype.Map, dest any, field *pgconn.FieldDescription, value []byte) error {
	binaryForm := field.Format == pgx.BinaryFormatCode && value != nil
	switch {
	case binaryForm && field.DataTypeOID == pgtype.Int8OID && len(value) == 8:
		n := int64(binary.BigEndian.Uint64(value))
		switch d := dest.(type) {
		case *int64:
			*d = n
			return nil
		case sql.Scanner:
			return d.Scan(n)
		}
	case field.DataTypeOID == pgtype.TextOID && value != nil, binaryForm && field.DataTypeOID == pgtype.ByteaOID:
		switch d := dest.(type) {
		case *[]byte:
			*d = append([]byte{}, value...)
			return nil
		case *string:
			if field.DataTypeOID == pgtype.TextOID {
				*d = string(value)
				return nil
			}
		}
	}
	return types.Scan(field.DataTypeOID, field.Format, value, dest)
}

// Err implements driver.Rows.
func (s *rows) Err() error { return s.err }

// Close implements driver.Rows.
func (s *rows) Close() error {
	if s.remote == nil {
		return nil
	}
	if s.result != nil {
		s.tag, s.err = s.result.Close()
		if !s.tag.Select() {
			s.remote.prefetched = nil // it may have written
		}
		for i := 0; i < len(s.expected) && s.err == nil; i++ {
			s.err = s.readExpected(&s.expected[i])
		}
	}
	if s.pipeline != nil {
		if err := s.pipeline.Close(); s.err == nil {
			s.err = err
		}
	}
	s.remote.open, s.remote, s.result, s.firstRead = nil, nil, nil, false
	return s.err
}
