package sqlstore

import (
	"context"
	"strings"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// MultiRow is the Bulk of engines that run fastest on prepared statements of
// many rows (SQLite, libSQL): INSERT … VALUES (…),(…) and
// UPDATE … WHERE (key…) IN (VALUES …). Rows are cut into a few fixed sizes so
// that each table needs only a few prepared statements.
type MultiRow struct {
	mu    sync.Mutex
	texts map[any]map[int]string
}

// rowSizes are the rows in one statement, largest first. Five columns × 1024
// rows stay well below SQLite's 32,766 variables.
var rowSizes = [...]int{1024, 256, 64, 16, 4, 1}

// maxValues bounds the values of one statement.
const maxValues = 8192

// Insert implements Bulk.
func (m *MultiRow) Insert(ctx context.Context, c *Conn, t *driver.Table, rows []any) error {
	return inChunks(len(t.Columns), rows, func(n int, chunk []any) error {
		text := m.text(t, n, func() string { return insertText(t, n) })
		_, err := c.Exec(ctx, text, chunk...)
		return err
	})
}

// Update implements Bulk.
func (m *MultiRow) Update(ctx context.Context, c *Conn, u *driver.Update, value any, keys []any) error {
	args := make([]any, 0, min(len(keys), maxValues)+1)
	return inChunks(len(u.Key), keys, func(n int, chunk []any) error {
		text := m.text(u, n, func() string { return updateText(u, n) })
		args = append(append(args[:0], value), chunk...)
		_, err := c.Exec(ctx, text, args...)
		return err
	})
}

// inChunks cuts rows of width values into the largest fitting sizes.
func inChunks(width int, rows []any, f func(n int, chunk []any) error) error {
	for _, n := range rowSizes {
		if n > 1 && n*width > maxValues {
			continue
		}
		for len(rows) >= n*width {
			if err := f(n, rows[:n*width]); err != nil {
				return err
			}
			rows = rows[n*width:]
		}
	}
	return nil
}

// text returns the statement for a table or update and a number of rows.
func (m *MultiRow) text(of any, n int, build func() string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts == nil {
		m.texts = map[any]map[int]string{}
	}
	if m.texts[of] == nil {
		m.texts[of] = map[int]string{}
	}
	text, ok := m.texts[of][n]
	if !ok {
		text = build()
		m.texts[of][n] = text
	}
	return text
}

func insertText(t *driver.Table, n int) string {
	return "INSERT INTO " + t.Name + " (" + ColumnList(t.Columns) + ") VALUES " + tuples(len(t.Columns), n)
}

func updateText(u *driver.Update, n int) string {
	return "UPDATE " + u.Table + " SET " + u.Set.Name + " = ? WHERE (" + ColumnList(u.Key) + ") IN (VALUES " + tuples(len(u.Key), n) + ")"
}

// ColumnList returns the names separated by commas.
func ColumnList(columns []driver.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// tuples returns n times "(?, …, ?)".
func tuples(width, n int) string {
	tuple := "(" + strings.Repeat("?, ", width-1) + "?)"
	return strings.Repeat(tuple+", ", n-1) + tuple
}
