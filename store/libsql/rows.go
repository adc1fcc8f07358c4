package libsql

import (
	sqldriver "database/sql/driver"
	"fmt"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// rows is a result of the library.
type rows struct{ sqldriver.Rows }

// Next implements sqldriver.Rows. The library turns text that reads as a date
// into a time, and database/sql would turn that into another text.
func (r *rows) Next(dest []sqldriver.Value) error {
	if err := r.Rows.Next(dest); err != nil {
		return err
	}
	for i, v := range dest {
		if _, isTime := v.(time.Time); isTime {
			name := r.Columns()[i]
			return fmt.Errorf("column %q holds text that reads as a date, which the library does not give as it is: %w; select CAST(… AS BLOB)",
				name, driver.ErrUnsupported)
		}
	}
	return nil
}
