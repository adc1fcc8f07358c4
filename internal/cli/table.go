package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// alignedRows are the rows whose columns are aligned with each other. They are held until
// their widths are known, so it is not all rows.
const alignedRows = 100

// rowTable prints rows in columns while others are still read. The caller flushes w.
type rowTable struct {
	w    *tabwriter.Writer
	rows int
}

func newTable(to io.Writer, columns ...string) *rowTable {
	t := &rowTable{w: tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)}
	fmt.Fprintln(t.w, strings.Join(columns, "\t"))
	return t
}

// row adds a row.
func (t *rowTable) row(cells ...any) error {
	if t.rows++; t.rows%alignedRows == 0 {
		if err := t.w.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(t.w, strings.TrimSuffix(strings.Repeat("%v\t", len(cells)), "\t")+"\n", cells...)
	return err
}
