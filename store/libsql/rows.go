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
	// For an empty blob the library hands out an address that is none, for which
	// the garbage collector ends the program when it meets it.
	for i, v := range dest {
		if b, ok := v.([]byte); ok && len(b) == 0 {
			dest[i] = []byte{}
		}
	}
	return guard.Row(r.Columns, dest)
}
