package postgres

import (
	"context"
	"database/sql"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varvedb/varve/store/driver"
)

// maxQueued is the size of the queue, in bytes, from which it is sent without
// waiting for the next statement.
const maxQueued = 1 << 20

// message is a statement that can be sent.
type message struct {
	text     string
	prepared *pgconn.StatementDescription // or nil
	build    pgx.ExtendedQueryBuilder     // its arguments, encoded
	answer   *answer                      // where its rows go, of an expected query
}

func (m *message) send(p *pgconn.Pipeline) {
	b := &m.build
	if m.prepared == nil {
		p.SendQueryParams(m.text, b.ParamValues, nil, b.ParamFormats, b.ResultFormats)
	} else {
		p.SendQueryStatement(m.prepared, b.ParamValues, b.ParamFormats, b.ResultFormats)
	}
}

// Later implements sqlstore.Remote.
func (r *remote) Later(ctx context.Context, text string, keep bool, args []any) error {
	return guarded(ctx, func() error { return r.later(ctx, text, keep, args) })
}

func (r *remote) later(ctx context.Context, text string, keep bool, args []any) error {
	r.prefetched = nil
	m := message{text: text}
	if err := r.encode(ctx, &m, keep, args); err != nil {
		return err
	}
	r.queue = append(r.queue, m)
	for _, value := range m.build.ParamValues {
		r.queuedBytes += len(value)
	}
	if r.queuedBytes < maxQueued {
		return nil
	}
	return r.Flush(ctx)
}

// Prefetch implements sqlstore.Remote.
func (r *remote) Prefetch(ctx context.Context, text string, keep bool, args []any) error {
	return guarded(ctx, func() error {
		m := message{text: text, answer: &answer{text: text, args: slices.Clone(args), types: r.conn.TypeMap()}}
		err := r.encode(ctx, &m, keep, args)
		if err == nil {
			r.expected = append(r.expected, m)
		}
		return err
	})
}

// Flush implements sqlstore.Remote.
func (r *remote) Flush(ctx context.Context) error {
	if len(r.queue) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := r.drain(); err != nil {
		return err
	}
	r.open = &rows{remote: r, types: r.conn.TypeMap()}
	err := r.sendAll(ctx, nil)
	if closed := r.open.Close(); err == nil {
		err = closed
	}
	return withContext(ctx, err)
}

// pack makes the message of the next statement.
func (r *remote) pack(ctx context.Context, s driver.Statement, keep bool, args []any) (*message, error) {
	if r.conn.PgConn().TxStatus() == 'I' {
		r.custom = false // it ended with its transaction
	}
	if keep && !r.custom && s.PlanByValue {
		if err := r.later(ctx, customPlans, false, nil); err != nil {
			return nil, err
		}
		r.custom = true
	}
	m := &r.build
	m.text = s.Text
	return m, r.encode(ctx, m, keep, args)
}

func (r *remote) encode(ctx context.Context, m *message, keep bool, args []any) (err error) {
	m.prepared = nil
	if keep {
		if m.prepared, err = r.prepare(ctx, m.text); err != nil {
			return err
		}
	}
	var arrays []binaryArray
	for i := range args {
		if array, ok := args[i].(binaryArray); ok {
			if arrays == nil {
				arrays = make([]binaryArray, len(args))
			}
			arrays[i], args[i] = array, nil
		}
	}
	if err := m.build.Build(r.conn.TypeMap(), m.prepared, args); err != nil {
		return err
	}
	for i, array := range arrays {
		if array != nil {
			m.build.ParamValues[i], m.build.ParamFormats[i] = array, pgx.BinaryFormatCode
		}
	}
	return nil
}

// sendAll sends the queue, a last message, if any, and the expected queries. It
// reads the answers up to the rows of the last message.
func (r *remote) sendAll(ctx context.Context, last *message) error {
	p := r.conn.PgConn().StartPipeline(ctx)
	r.open.pipeline = p
	sent := r.queue
	r.queue, r.queuedBytes = nil, 0
	if last != nil {
		r.open.expected, r.expected = r.expected, nil
	}
	for i := range sent {
		sent[i].send(p)
	}
	if last != nil {
		last.send(p)
	}
	for i := range r.open.expected {
		r.open.expected[i].send(p)
	}
	if r.ended {
		p.SendQueryParams("ROLLBACK", nil, nil, nil, nil)
	}
	if err := p.Sync(); err != nil {
		return err
	}
	for range sent {
		if err := r.open.next(); err != nil {
			return err
		}
		if _, err := r.open.result.Close(); err != nil {
			return err
		}
	}
	if last == nil {
		return nil
	}
	return r.open.next()
}

// clearQueue drops everything that is to be sent with the next statement.
func (r *remote) clearQueue() { r.queue, r.queuedBytes, r.expected = nil, 0, nil }

// answerTo returns the received answer to a query, once.
func (r *remote) answerTo(text string, args []any) *answer {
	if r.open != nil && len(r.open.expected) > 0 {
		_ = r.open.Close() // its error was the reader's to see
	}
	i := slices.IndexFunc(r.prefetched, func(a *answer) bool { return a.to(text, args) })
	if i < 0 {
		return nil
	}
	a := r.prefetched[i]
	r.prefetched = slices.Delete(r.prefetched, i, i+1)
	return a
}

// answer is the rows of an expected query. It implements driver.Rows.
type answer struct {
	text   string
	args   []any
	types  *pgtype.Map
	fields []pgconn.FieldDescription
	rows   [][][]byte
	now    [][]byte
}

// to reports whether it is the answer to a query.
func (a *answer) to(text string, args []any) bool {
	return a.text == text && reflect.DeepEqual(a.args, args)
}

func (a *answer) read(result *pgconn.ResultReader) {
	a.fields = slices.Clone(result.FieldDescriptions())
	for result.NextRow() {
		var row [][]byte
		for _, value := range result.Values() {
			row = append(row, slices.Clone(value)) // which keeps NULL nil
		}
		a.rows = append(a.rows, row)
	}
}

// Next implements driver.Rows.
func (a *answer) Next() bool {
	if len(a.rows) == 0 {
		a.now = nil
		return false
	}
	a.now, a.rows = a.rows[0], a.rows[1:]
	return true
}

// Scan implements driver.Rows.
func (a *answer) Scan(dest ...any) error {
	if a.now == nil {
		return sql.ErrNoRows
	}
	return scan(a.types, a.fields, a.now, dest)
}

// Err implements driver.Rows.
func (a *answer) Err() error { return nil }

// Close implements driver.Rows.
func (a *answer) Close() error {
	a.rows, a.now = nil, nil
	return nil
}
