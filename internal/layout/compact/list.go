package compact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// listSizes are how often what stands in braces in a statement is repeated:
// few sizes, so that few statements are prepared.
var listSizes = [...]int{1, 4, 16, 64, 256}

// textCache keeps statements by name and list size.
type textCache struct {
	mu    sync.Mutex
	texts map[textKey]string
}

type textKey struct {
	name string
	size int
}

// text returns a statement with what stands in braces repeated.
func (l *Layout) text(name string, size int) string {
	l.texts.mu.Lock()
	defer l.texts.mu.Unlock()
	key := textKey{name, size}
	if text, ok := l.texts.texts[key]; ok {
		return text
	}
	if l.texts.texts == nil {
		l.texts.texts = map[textKey]string{}
	}
	before, rest, _ := strings.Cut(l.sql[name], "{")
	item, after, _ := strings.Cut(rest, "}")
	text := before + strings.Repeat(item+", ", size-1) + item + after
	l.texts.texts[key] = text
	return text
}

// eachQuery runs a reading statement over a list of arguments, width of them an
// item, followed by more. A list is filled up by repeating its last item, so f
// may see a row more than once when the list stands in a join.
func (l *Layout) eachQuery(ctx context.Context, q driver.Querier, name string, width int, list []any, more []any, f func(driver.Rows) error) error {
	for len(list) > 0 {
		size := listSizes[len(listSizes)-1]
		for _, s := range listSizes {
			if s*width >= len(list) {
				size = s
				break
			}
		}
		n := min(size*width, len(list))
		args := append(make([]any, 0, size*width+len(more)), list[:n]...)
		for len(args) < size*width {
			args = append(args, list[n-width:n]...)
		}
		list = list[n:]
		if err := eachRow(ctx, q, l.text(name, size), append(args, more...), f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// eachExec runs a writing statement over a list of arguments, each item once. One
// that has no list is run for each item.
func (l *Layout) eachExec(ctx context.Context, tx driver.Tx, name string, width int, list []any) error {
	largest := len(listSizes) - 1
	if !strings.Contains(l.sql[name], "{") {
		largest = 0
	}
	for i := largest; i >= 0; i-- {
		n := listSizes[i] * width
		for len(list) >= n {
			if _, err := tx.Exec(ctx, l.text(name, listSizes[i]), list[:n]...); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			list = list[n:]
		}
	}
	return nil
}

// eachRow runs a query and calls f with each row.
func eachRow(ctx context.Context, q driver.Querier, text string, args []any, f func(driver.Rows) error) (err error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
