package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// codec stores a Uint minus 2⁶³ and keeps nil bytes from becoming NULL.
type codec struct{ sqlstore.Biased }

// Encode implements sqlstore.Codec.
func (c codec) Encode(arg any) any {
	if b, ok := arg.([]byte); ok && b == nil {
		return []byte{}
	}
	return c.Biased.Encode(arg)
}

// copyRows is the number of rows from which COPY is faster than a prepared
// INSERT of arrays. COPY is parsed and planned each time and takes three more
// round trips, because queued statements go first. For 256 pages of 1 KB it
// saves a quarter of both sides' processor time, 1 ms.
const copyRows = 200

// bulk writes rows by COPY or by statements whose arguments are arrays, one for
// each column.
type bulk struct{ texts sqlstore.Texts }

// Insert implements sqlstore.Bulk.
func (b *bulk) Insert(ctx context.Context, c *sqlstore.Conn, t *driver.Table, rows []any) error {
	if len(rows) >= copyRows*len(t.Columns) {
		return b.copy(ctx, c, t, rows)
	}
	arrays, err := columnArrays(t.Columns, rows)
	if err != nil {
		return err
	}
	return c.Defer(ctx, b.texts.Get(t, 0, func() string { return insertText(t) }), arrays...)
}

// Update implements sqlstore.Bulk.
func (b *bulk) Update(ctx context.Context, c *sqlstore.Conn, u *driver.Update, value any, keys []any) error {
	arrays, err := columnArrays(u.Key, keys)
	if err != nil {
		return err
	}
	return c.Defer(ctx, b.texts.Get(u, 0, func() string { return updateText(u) }), append([]any{value}, arrays...)...)
}

func (b *bulk) copy(ctx context.Context, c *sqlstore.Conn, t *driver.Table, rows []any) error {
	text := b.texts.Get(t, copyRows, func() string {
		return "COPY " + t.Name + " (" + sqlstore.ColumnList(t.Columns) + ") FROM STDIN (FORMAT binary)"
	})
	if err := c.Flush(ctx); err != nil {
		return err
	}
	return c.Mapped(guarded(ctx, func() error {
		return withConn(c, func(conn *pgx.Conn) error {
			_, err := conn.PgConn().CopyFrom(ctx, newCopyReader(t.Columns, rows), text)
			return err
		})
	}))
}

func insertText(t *driver.Table) string {
	return "INSERT INTO " + t.Name + " (" + sqlstore.ColumnList(t.Columns) + ") SELECT * FROM unnest(" + arrayParams(t.Columns) + ")"
}

func updateText(u *driver.Update) string {
	var match []string
	for _, column := range u.Key {
		match = append(match, "t."+column.Name+" = k."+column.Name)
	}
	return "UPDATE " + u.Table + " AS t SET " + u.Set.Name + " = ? FROM unnest(" + arrayParams(u.Key) + ") AS k (" +
		sqlstore.ColumnList(u.Key) + ") WHERE " + strings.Join(match, " AND ")
}

var arrayTypes = map[driver.Type]struct {
	name    string
	element uint32
}{
	driver.Int: {"bigint[]", pgtype.Int8OID}, driver.Uint: {"bigint[]", pgtype.Int8OID},
	driver.Text: {"text[]", pgtype.TextOID}, driver.Blob: {"bytea[]", pgtype.ByteaOID},
}

func arrayParams(columns []driver.Column) string {
	list := make([]string, len(columns))
	for i, column := range columns {
		list[i] = "?::" + arrayTypes[column.Type].name
	}
	return strings.Join(list, ", ")
}

// binaryArray is an argument as it is sent, in an array's binary form. Made here it is
// copied once; pgx's buffer would grow with each of a block's payloads.
type binaryArray []byte

// columnArrays converts rows into one array for each column.
func columnArrays(columns []driver.Column, rows []any) ([]any, error) {
	arrays := make([]any, len(columns))
	for i := range columns {
		var err error
		if arrays[i], err = columnArray(columns, rows, i); err != nil {
			return nil, err
		}
	}
	return arrays, nil
}

func columnArray(columns []driver.Column, rows []any, i int) (binaryArray, error) {
	column, size := columns[i], 20+12*len(rows)/len(columns)
	for at := i; at < len(rows); at += len(columns) {
		switch v := rows[at].(type) {
		case []byte:
			size += len(v)
		case string:
			size += len(v)
			// The server would refuse it, but say so only when the statement is sent.
			if !utf8.ValidString(v) || strings.Contains(v, "\x00") {
				return nil, fmt.Errorf("%w: column %s: text is UTF-8 without U+0000", driver.ErrUnsupported, column.Name)
			}
		}
	}
	array := make(binaryArray, 0, size)
	for _, n := range []uint32{1, 0, arrayTypes[column.Type].element, uint32(len(rows) / len(columns)), 1} { // dimensions, no NULL, …, the first index
		array = binary.BigEndian.AppendUint32(array, n)
	}
	for at := i; at < len(rows); at += len(columns) {
		var ok bool
		if array, ok = appendValue(array, column.Type, rows[at]); !ok {
			return nil, wrongType(column, rows[at])
		}
	}
	return array, nil
}

func wrongType(column driver.Column, value any) error {
	return fmt.Errorf("column %s: %T is not its type", column.Name, value)
}
