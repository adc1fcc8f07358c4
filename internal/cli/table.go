package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// alignedRows is the number of rows whose columns are aligned together. They
// are buffered until their widths are known, so it is limited.
const alignedRows = 100

// rowTable prints rows in columns while further rows are still being read. The
// caller flushes w.
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
