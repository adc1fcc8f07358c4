package remote

import (
	"context"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// bulk writes many rows in a statement, and has these statements wait for the next
// request: a commit takes as many round trips as it has queries, and two.
type bulk struct {
	sqlstore.MultiRow
	maxRow int
}

// Insert implements sqlstore.Bulk. Rows are taken until they fill a request.
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

// rowSize returns about how many bytes a row takes.
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
