// Package statement runs named SQL statements, including statements over a
// list: their parts in braces are repeated once for each item.
package statement

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// Set has statements by name. Its errors begin with the name.
type Set struct {
	all   map[string]driver.Statement
	lists Texts
}

// New returns a set of statements.
func New(text map[string]string) *Set {
	s := &Set{all: make(map[string]driver.Statement, len(text))}
	for name := range text {
		s.all[name] = driver.Statement{Text: text[name]}
	}
	return s
}

// Prefetch returns a statement as a query that is expected to run.
func (s *Set) Prefetch(name string, args ...any) driver.Prefetch {
	return driver.Prefetch{Text: s.all[name].Text, Args: args}
}

// PrefetchIn returns the queries that EachIn would run.
func (s *Set) PrefetchIn(name string, list, more []any) (expected []driver.Prefetch) {
	for size, args := range parts(list, more) {
		expected = append(expected, driver.Prefetch{Text: s.List(name, size), Args: args})
	}
	return expected
}

// List returns the text of a statement over a list of a size.
func (s *Set) List(name string, size int) string {
	shape := append(make([]byte, 0, 64), name...)
	return s.lists.Get(append(shape, byte(size>>8), byte(size)), func() string {
		before, rest, _ := strings.Cut(s.all[name].Text, "{")
		item, after, _ := strings.Cut(rest, "}")
		return before + strings.Repeat(item+", ", size-1) + item + after
	})
}

// Texts keeps the texts of statements by their shapes, so that each shape has
// one text, which engines have prepared already.
type Texts struct {
	mu      sync.Mutex
	byShape map[string]string
}

// maxTexts bounds the texts. A workload of ever new shapes starts over.
const maxTexts = 4096

// Get returns the text of a shape; build makes it.
func (t *Texts) Get(shape []byte, build func() string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, ok := t.byShape[string(shape)]
	if ok {
		return text
	}
	if t.byShape == nil || len(t.byShape) >= maxTexts {
		t.byShape = map[string]string{}
	}
	text = build()
	t.byShape[string(shape)] = text
	return text
}

// Exec runs a statement. The transaction may defer it.
func (s *Set) Exec(ctx context.Context, tx driver.Tx, name string, args ...any) error {
	if err := driver.Run(ctx, tx, s.all[name].Text, args...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Int returns the single number that a statement returns.
func (s *Set) Int(ctx context.Context, q driver.Querier, name string, args ...any) (n int64, err error) {
	err = s.Row(ctx, q, name, args, &n)
	return n, err
}

// Row scans the first row of a statement. It fails with driver.ErrNoRows when
// there is none.
func (s *Set) Row(ctx context.Context, q driver.Querier, name string, args []any, dest ...any) error {
	if err := s.all[name].Row(ctx, q, args, dest...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Query runs a statement whose rows the caller reads.
func (s *Set) Query(ctx context.Context, q driver.Querier, name string, args ...any) (driver.Rows, error) {
	rows, err := s.all[name].Query(ctx, q, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
}

// Each calls f with each row of a statement.
func (s *Set) Each(ctx context.Context, q driver.Querier, name string, args []any, f func(driver.Rows) error) error {
	if err := Each(ctx, q, s.all[name], args, f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// EachOf is Each for a statement over a list of a size.
func (s *Set) EachOf(ctx context.Context, q driver.Querier, name string, size int, args []any, f func(driver.Rows) error) error {
	if err := Each(ctx, q, driver.Statement{Text: s.List(name, size)}, args, f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// ErrEnough is returned by a row function that wants no more rows. It ends the
// query without an error.
var ErrEnough = errors.New("enough rows")

// Each calls f with each row that a statement selects.
func Each(ctx context.Context, q driver.Querier, s driver.Statement, args []any, f func(driver.Rows) error) error {
	err := s.Each(ctx, q, args, f)
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// sizes are the list lengths in use; they are few, so that few statements are
// prepared.
var sizes = [...]int{1, 4, 16, 32, 64, 128, 256}

// EachIn is Each over a list of any length, followed by more arguments. The
// list is padded by repeating its last item, so f may see a row more than once
// when the list is joined.
func (s *Set) EachIn(ctx context.Context, q driver.Querier, name string, list, more []any, f func(driver.Rows) error) error {
	for size, args := range parts(list, more) {
		if err := s.EachOf(ctx, q, name, size, args, f); err != nil {
			return err
		}
	}
	return nil
}

// parts divides a list into parts, pads each to one of the sizes, and appends
// the other arguments.
func parts(list, more []any) iter.Seq2[int, []any] {
	return func(yield func(int, []any) bool) {
		for len(list) > 0 {
			size := sizes[len(sizes)-1]
			for _, n := range sizes {
				if n >= len(list) {
					size = n
					break
				}
			}
			n := min(size, len(list))
			args := append(make([]any, 0, size+len(more)), list[:n]...)
			for len(args) < size {
				args = append(args, list[n-1])
			}
			list = list[n:]
			if !yield(size, append(args, more...)) {
				return
			}
		}
	}
}

// ExecIn runs a statement over a list of any length, width arguments an item, each item
// once.
func (s *Set) ExecIn(ctx context.Context, tx driver.Tx, name string, width int, list []any) error {
	for i := len(sizes) - 1; i >= 0; i-- {
		for n := sizes[i] * width; len(list) >= n; list = list[n:] {
			if err := driver.Run(ctx, tx, s.List(name, sizes[i]), list[:n]...); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
