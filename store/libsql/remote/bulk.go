package remote

import (
	"context"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// bulk inserts many rows in a statement, and sends these statements with the
// next request. A commit therefore takes two round trips more than it has
// queries.
type bulk struct {
	sqlstore.MultiRow
	maxRow int
}

// Insert implements sqlstore.Bulk. It collects rows until they fill a request.
func (b *bulk) Insert(ctx context.Context, c *sqlstore.Conn, t *driver.Table, rows []any) error {
	width := len(t.Columns)
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && size < maxQueue {
			row := rowSize(rows[n : n+width])
			if row > b.maxRow {
				return tooBig(row, b.maxRow)
			}
			n, size = n+width, size+row
		}
		if err := b.MultiRow.Insert(ctx, c, t, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// rowSize estimates the size of a row in bytes.
func rowSize(values []any) (n int) {
	for _, v := range values {
		switch v := v.(type) {
		case []byte:
			n += len(v)
		case string:
			n += len(v)
		default:
			n += 8
		}
	}
	return n
}
