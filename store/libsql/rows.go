package libsql

import (
	sqldriver "database/sql/driver"
	"io"

	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// rows is a result of the library.
type rows struct{ sqldriver.Rows }

// Next implements sqldriver.Rows.
func (r *rows) Next(dest []sqldriver.Value) error {
	if err := r.Rows.Next(dest); err != nil {
		return err
	}
	return guard.Row(r.Columns, dest)
}

// none is the result of a statement that has no rows.
type none struct{}

// Columns implements sqldriver.Rows.
func (none) Columns() []string { return nil }

// Close implements sqldriver.Rows.
func (none) Close() error { return nil }

// Next implements sqldriver.Rows.
func (none) Next([]sqldriver.Value) error { return io.EOF }
