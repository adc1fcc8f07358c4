package libsql

import (
	sqldriver "database/sql/driver"

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
