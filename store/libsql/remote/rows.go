package remote

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"time"
)

// rows is a result, either complete or received in parts.
type rows struct {
	columns []string
	list    [][]value // not read yet, if it has come whole

	parts  *cursor
	ended  bool // by an entry of the type step_end
	timer  *time.Timer
	cancel context.CancelFunc
}

// parts runs a query and receives its rows in parts.
func (c *conn) parts(ctx context.Context, s step) (*rows, error) {
	steps := []step{s}
	chain(steps, nil)
	if c.open {
		chain(steps, inTransaction)
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &rows{cancel: cancel, timer: time.AfterFunc(c.timeout, cancel)}
	var err error
	if r.parts, err = c.cursor(ctx, &c.stream, steps); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	c.used()
	e, err := r.parts.next()
	switch {
	case err == nil && e.Type != "step_begin":
		err = c.ended(errNotRun)
		fallthrough
	case err != nil:
		return nil, errors.Join(err, r.Close())
	}
	r.columns = names(e.Cols)
	return r, nil
}

func names(cols []column) []string {
	list := make([]string, len(cols))
	for i, c := range cols {
		list[i] = c.Name
	}
	return list
}

// Columns implements sqldriver.Rows.
func (r *rows) Columns() []string { return r.columns }

// Close implements sqldriver.Rows. If rows are unread, the server ends the
// query.
func (r *rows) Close() error {
	r.list = nil
	if r.cancel != nil {
		r.timer.Stop()
		r.cancel()
	}
	if r.parts != nil {
		return r.parts.body.Close()
	}
	return nil
}

// Next implements sqldriver.Rows.
func (r *rows) Next(dest []sqldriver.Value) error {
	row, err := r.next()
	if err != nil {
		return err
	}
	if len(row) != len(dest) {
		return errProtocol
	}
	for i, v := range row {
		if dest[i], err = v.native(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rows) next() ([]value, error) {
	if r.parts == nil {
		if len(r.list) == 0 {
			return nil, io.EOF
		}
		row := r.list[0]
		r.list = r.list[1:]
		return row, nil
	}
	for {
		r.timer.Reset(r.parts.link.timeout)
		e, err := r.parts.next()
		switch {
		case errors.Is(err, io.EOF) && !r.ended:
			return nil, r.parts.link.brokenStream(io.ErrUnexpectedEOF)
		case err != nil:
			return nil, err
		case e.Type == "row":
			return e.Row, nil
		case e.Type == "step_end":
			r.ended = true
		}
	}
}
