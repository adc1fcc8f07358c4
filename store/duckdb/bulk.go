package duckdb

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

const (
	// smallRows is the number of rows up to which one prepared INSERT is faster
	// than an appender: 0.25 ms against 0.4 ms for four rows, 0.8 ms against
	// 0.5 ms for 64.
	smallRows = 16

	// flushBytes is the size of text and blobs after which an appender is
	// flushed, because its buffer is outside the memory budget.
	flushBytes = 16 << 20

	// given is the name by which a statement sees an appender's rows.
	given = "varve_given"
)

// bulk writes rows through query appenders: the rows are handed over as a table
// in memory, and one statement takes all of them, in the connection's open
// transaction. One appender serves one call.
type bulk struct {
	plans sync.Map // by the address of the Table or Update
}

var _ sqlstore.Bulk = (*bulk)(nil)

// plan has the prepared parts of a table's inserts and updates.
type plan struct {
	columns []driver.Column   // of the rows that are handed over
	types   []duckdb.TypeInfo // of these columns
	names   []string          // of these columns, as the statement sees them
	text    string            // the statement
	small   [smallRows + 1]string
}

// Insert implements sqlstore.Bulk.
func (b *bulk) Insert(ctx context.Context, c *sqlstore.Conn, t *driver.Table, rows []any) error {
	p, err := b.plan(t, func() (*plan, error) { return insertPlan(t) })
	if err != nil {
		return err
	}
	if err := checkValues(t.Columns, rows); err != nil {
		return err
	}
	width := len(t.Columns)
	if n := len(rows) / width; n <= smallRows {
		_, err := c.Exec(ctx, p.small[n], rows...)
		return err
	}
	return p.run(ctx, c, len(rows)/width, func(i int, row []sqldriver.Value) {
		for j, v := range rows[i*width : (i+1)*width] {
			row[j] = v
		}
	})
}

// Update implements sqlstore.Bulk. The value travels with each key, since the
// statement of an appender takes no arguments.
func (b *bulk) Update(ctx context.Context, c *sqlstore.Conn, u *driver.Update, value any, keys []any) error {
	p, err := b.plan(u, func() (*plan, error) { return updatePlan(u) })
	if err != nil {
		return err
	}
	if err := errors.Join(checkValue(&u.Set, value), checkValues(u.Key, keys)); err != nil {
		return err
	}
	width := len(u.Key)
	return p.run(ctx, c, len(keys)/width, func(i int, row []sqldriver.Value) {
		row[0] = value
		for j, v := range keys[i*width : (i+1)*width] {
			row[j+1] = v
		}
	})
}

func (b *bulk) plan(of any, build func() (*plan, error)) (*plan, error) {
	if p, ok := b.plans.Load(of); ok {
		return p.(*plan), nil
	}
	p, err := build()
	if err == nil {
		b.plans.Store(of, p)
	}
	return p, err
}

func insertPlan(t *driver.Table) (*plan, error) {
	p, err := newPlan(t.Columns)
	if err != nil {
		return nil, err
	}
	into := "INSERT INTO " + t.Name + " (" + sqlstore.ColumnList(t.Columns) + ") "
	p.text = into + "SELECT " + strings.Join(p.names, ", ") + " FROM " + given
	tuple := "(" + strings.Repeat("?, ", len(t.Columns)-1) + "?)"
	for n := 1; n <= smallRows; n++ {
		p.small[n] = into + "VALUES " + strings.Repeat(tuple+", ", n-1) + tuple
	}
	return p, nil
}

func updatePlan(u *driver.Update) (*plan, error) {
	p, err := newPlan(append([]driver.Column{u.Set}, u.Key...))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("UPDATE " + u.Table + " AS t SET " + u.Set.Name + " = g." + p.names[0] + " FROM " + given + " AS g WHERE ")
	for i, key := range u.Key {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString("t." + key.Name + " = g." + p.names[i+1])
	}
	p.text = b.String()
	return p, nil
}

var nativeTypes = map[driver.Type]duckdb.Type{
	driver.Int:  duckdb.TYPE_BIGINT,
	driver.Uint: duckdb.TYPE_UBIGINT,
	driver.Text: duckdb.TYPE_VARCHAR,
	driver.Blob: duckdb.TYPE_BLOB,
}

func newPlan(columns []driver.Column) (*plan, error) {
	p := &plan{columns: columns}
	for i, c := range columns {
		t, err := duckdb.NewTypeInfo(nativeTypes[c.Type])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		p.types = append(p.types, t)
		p.names = append(p.names, "c"+strconv.Itoa(i))
	}
	return p, nil
}

// run hands n rows over to the statement, on the connection and in its
// transaction.
func (p *plan) run(ctx context.Context, c *sqlstore.Conn, n int, fill func(i int, row []sqldriver.Value)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := c.Raw(func(native any) error {
		conn, ok := native.(sqldriver.Conn)
		if !ok {
			return fmt.Errorf("not a connection: %T", native)
		}
		a, err := duckdb.NewQueryAppender(conn, p.text, given, p.types, p.names)
		if err != nil {
			return err
		}
		if err := p.append(ctx, a, n, fill); err != nil {
			return errors.Join(err, a.Clear(), a.Close())
		}
		return a.CloseWithCancel(ctx)
	})
	return c.Mapped(err)
}

func (p *plan) append(ctx context.Context, a *duckdb.Appender, n int, fill func(i int, row []sqldriver.Value)) error {
	row, held := make([]sqldriver.Value, len(p.columns)), 0
	for i := range n {
		fill(i, row)
		if err := a.AppendRow(row...); err != nil {
			return err
		}
		for _, v := range row {
			switch v := v.(type) {
			case string:
				held += len(v)
			case []byte:
				held += len(v)
			}
		}
		if held >= flushBytes {
			if err := a.FlushWithCancel(ctx); err != nil {
				return err
			}
			held = 0
		}
	}
	return nil
}

// checkValues refuses values of another type than their column's. An appender
// would store some of them as NULL, among them text that is not UTF-8.
func checkValues(columns []driver.Column, values []any) error {
	for i, v := range values {
		if err := checkValue(&columns[i%len(columns)], v); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(c *driver.Column, v any) error {
	var ok bool
	switch c.Type {
	case driver.Int:
		_, ok = v.(int64)
	case driver.Uint:
		_, ok = v.(uint64)
	case driver.Blob:
		_, ok = v.([]byte)
	case driver.Text:
		var text string
		if text, ok = v.(string); ok && !utf8.ValidString(text) {
			return fmt.Errorf("column %s: %w: text that is not UTF-8", c.Name, driver.ErrUnsupported)
		}
	}
	if !ok {
		return fmt.Errorf("column %s: a value of type %T does not fit it", c.Name, v)
	}
	return nil
}
