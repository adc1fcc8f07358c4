package lsm

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
)

// Options configure the sizes of pages and the work of compactions.
type Options struct {
	// Page is the largest size of a page with its lowest key, in bytes, unless
	// one entry is longer.
	Page int
	// Fan bounds the number of runs. A run is merged with all newer runs once
	// these together are Fan-1 times as large. A larger Fan makes more runs and
	// less work.
	Fan int64
	// Piece is the number of pages of a compaction that are written together.
	Piece int
}

// Store keeps the pages of a tree in a table with the columns run, low and body.
type Store struct {
	opts  Options
	table *driver.Table
	sql   *statement.Set
}

// NewStore returns the store of a table. Its statements are find_pages, run_pages,
// run_pages_down, run_start, run_bound, run_sizes, drop_pages and drop_run.
func NewStore(table string, sql *statement.Set, o Options) *Store {
	return &Store{opts: o, sql: sql, table: &driver.Table{Name: table, Columns: []driver.Column{
		{Name: "run", Type: driver.Int}, {Name: "low", Type: driver.Blob}, {Name: "body", Type: driver.Blob},
	}}}
}

// Table returns the table.
func (s *Store) Table() *driver.Table { return s.table }

// Publish puts the run of the batch into the tree, all of whose pages are written.
func (s *Store) Publish(t *Tree, pages int) { t.publish(pages, s.opts.Fan) }

// Write makes a run of edits and puts it into the tree at once.
func (s *Store) Write(ctx context.Context, tx driver.Tx, t *Tree, edits []Edit) error {
	pages := s.Pages(edits)
	if len(pages) == 0 {
		return nil
	}
	t.Begin()
	if err := s.Insert(ctx, tx, t.writing, pages); err != nil {
		return err
	}
	s.Publish(t, len(pages))
	t.End()
	return nil
}

// Insert writes pages of a run.
func (s *Store) Insert(ctx context.Context, tx driver.Tx, run int64, pages []Page) error {
	rows := make([]any, 0, 3*len(pages))
	for _, p := range pages {
		rows = append(rows, run, p.Low, p.Body)
	}
	return tx.Insert(ctx, s.table, rows)
}

// Find calls f with the postings of spans, which come in order and do not overlap.
// It reads the pages of many spans at once. When they have more pages than a limit,
// it stops, and returns the range of keys that already has so many.
func (s *Store) Find(ctx context.Context, q driver.Querier, t *Tree, spans []Span, limit int64, f func(*Posting) error) (long *Span, err error) {
	if len(t.runs) == 0 {
		return nil, nil
	}
	for spans := range slices.Chunk(spans, max(maxPlaces/len(t.runs), 1)) {
		m, n, err := s.read(ctx, q, t.runs, spans, limit)
		if err != nil {
			return nil, err
		}
		if n >= limit {
			return &Span{spans[0].lo, m.behind()}, nil
		}
		for p, err := range m.postings(nil, spans...) {
			if err == nil {
				err = f(p)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// behind returns the key after the highest one with which a page begins.
func (m *merger) behind() (key []byte) {
	for _, c := range m.cursors {
		if n := len(c.pages); n > 0 && bytes.Compare(c.pages[n-1].Low, key) > 0 {
			key = c.pages[n-1].Low
		}
	}
	return append(slices.Clip(key), 0)
}

// maxPlaces bounds the look-ups of one statement: each is of a span in a run.
const maxPlaces = 256

// Prefetch returns the queries that Find would run.
func (s *Store) Prefetch(t *Tree, spans []Span, limit int64) (expected []driver.Prefetch) {
	if len(t.runs) == 0 {
		return nil
	}
	for spans := range slices.Chunk(spans, max(maxPlaces/len(t.runs), 1)) {
		size, args := places(t.runs, spans, limit)
		expected = append(expected, driver.Prefetch{Text: s.sql.List("find_pages", size), Args: args})
	}
	return expected
}

// places returns the look-ups of spans in runs, as a list of a size and a limit.
func places(runs []run, spans []Span, limit int64) (size int, args []any) {
	size = listSize(len(runs) * len(spans))
	args = make([]any, 0, 3*size+1)
	for i := range runs {
		for _, span := range spans {
			args = append(args, runs[i].no, span.lo, span.hi)
		}
	}
	for len(args) < 3*size {
		args = append(args, int64(0), spans[0].lo, spans[0].hi) // no run
	}
	return size, append(args, limit)
}

// read reads the pages of runs that entries of spans may lie on.
func (s *Store) read(ctx context.Context, q driver.Querier, runs []run, spans []Span, limit int64) (m *merger, n int64, err error) {
	size, args := places(runs, spans, limit)
	cursors := make([]cursor, len(runs))
	m = &merger{cursors: make([]*cursor, len(runs)), at: make([]*cursor, 0, len(runs))}
	for i := range runs {
		m.cursors[i] = &cursors[i]
	}
	err = s.sql.EachOf(ctx, q, "find_pages", size, args, func(rows driver.Rows) error {
		var no int64
		var p Page
		if err := rows.Scan(&no, &p.Low, &p.Body); err != nil {
			return err
		}
		n++
		if i := slices.IndexFunc(runs, func(r run) bool { return r.no == no }); i >= 0 {
			cursors[i].pages = append(cursors[i].pages, p)
		}
		return nil
	})
	for i := range cursors {
		cursors[i].pages = sorted(cursors[i].pages)
	}
	return m, n, err
}

// sorted sorts pages; one on which several spans lie comes as often.
func sorted(pages []Page) []Page {
	if !slices.IsSortedFunc(pages, byLow) {
		slices.SortFunc(pages, byLow)
	}
	return slices.CompactFunc(pages, func(a, b Page) bool { return byLow(a, b) == 0 })
}

// listSize returns how long a list of look-ups in a statement is made. The sizes of other
// lists are too far apart: each place that is filled up costs a look-up.
func listSize(n int) int {
	switch {
	case n <= 8:
		return n
	case n <= 32:
		return (n + 3) &^ 3
	}
	return (n + 31) &^ 31
}

// Walk yields the postings of a span in the order of keys or, with down, in the
// reverse order. It reads a few pages of each run at first and then twice as many
// each time, because most callers stop early. A posting is valid until the next.
func (s *Store) Walk(ctx context.Context, q driver.Querier, t *Tree, span Span, down bool) iter.Seq2[*Posting, error] {
	return func(yield func(*Posting, error) bool) {
		m, err := s.merger(ctx, q, t.runs, span, down)
		if err != nil {
			yield(nil, err)
			return
		}
		m.postings(s.loader(ctx, q), span)(yield)
	}
}

// Values returns the values of a space in order, or nil when there are more than a
// limit. It looks up each value behind the one before, because a value may
// have many postings.
func (s *Store) Values(ctx context.Context, q driver.Querier, t *Tree, space uint32, limit int) ([]string, error) {
	values := []string{}
	for lo := ""; ; lo = values[len(values)-1] + "\x00" {
		found := len(values)
		for p, err := range s.Walk(ctx, q, t, Within(space, lo, ""), false) {
			if err != nil {
				return nil, err
			}
			values = append(values, string(p.Value))
			break
		}
		if len(values) == found {
			return values, nil
		}
		if len(values) > limit {
			return nil, nil
		}
	}
}

// merger returns a merger of runs that begins with the first entry of a span or,
// with down, with the last.
func (s *Store) merger(ctx context.Context, q driver.Querier, runs []run, span Span, down bool) (*merger, error) {
	m := &merger{}
	for _, r := range runs {
		c := &cursor{run: r.no, from: []byte{}, down: down}
		m.cursors = append(m.cursors, c)
		if down {
			c.from = span.hi
		} else if len(span.lo) > 0 {
			// The page that begins last at or before the span may have its first entry.
			err := s.sql.Each(ctx, q, "run_start", []any{r.no, span.lo}, func(rows driver.Rows) error { return rows.Scan(&c.from) })
			if err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// The pages of a run that are read together: at first, and at most.
const (
	firstPages = 2
	maxPages   = 64
)

// loader returns a function that reads the next pages of a run.
func (s *Store) loader(ctx context.Context, q driver.Querier) loader {
	return func(c *cursor) (pages []Page, err error) {
		c.read = min(max(2*c.read, firstPages), maxPages)
		statement := "run_pages"
		if c.down {
			statement = "run_pages_down"
		}
		err = s.sql.Each(ctx, q, statement, []any{c.run, c.from, c.read}, func(rows driver.Rows) error {
			var p Page
			err := rows.Scan(&p.Low, &p.Body)
			pages = append(pages, p)
			return err
		})
		return pages, err
	}
}

// drop deletes a number of pages of a run that is no longer in the tree.
func (s *Store) drop(ctx context.Context, tx driver.Tx, t *Tree, pages int) (err error) {
	d := t.dropped[0]
	if d.from == nil {
		d.from = []byte{}
	}
	var bound []byte
	err = s.sql.Each(ctx, tx, "run_bound", []any{d.no, d.from, int64(pages)}, func(rows driver.Rows) error { return rows.Scan(&bound) })
	switch {
	case err != nil:
		return err
	case bound == nil:
		t.dropped = t.dropped[1:]
		return s.sql.Exec(ctx, tx, "drop_run", d.no, d.from)
	}
	t.dropped = slices.Concat([]leftover{{d.run, bound}}, t.dropped[1:])
	return s.sql.Exec(ctx, tx, "drop_pages", d.no, d.from, bound)
}

// Check calls report with each run that does not have the recorded number of pages, until that returns an
// error. The owner's own rows are under numbers from Tree.Number.
func (s *Store) Check(ctx context.Context, q driver.Querier, t *Tree, own []int64, report func(format string, args ...any) error) error {
	wanted := map[int64]int64{}
	for _, r := range t.runs {
		wanted[r.no] = r.pages
	}
	for _, job := range t.jobs {
		wanted[job.out.no] = job.out.pages
	}
	unknown := map[int64]bool{t.writing: t.published != t.writing} // how many pages they have
	for _, r := range t.dropped {
		unknown[r.no] = true
	}
	for _, no := range own {
		unknown[no] = true
	}
	err := s.sql.Each(ctx, q, "run_sizes", nil, func(rows driver.Rows) error {
		var no, pages int64
		if err := rows.Scan(&no, &pages); err != nil {
			return err
		}
		want, known := wanted[no]
		delete(wanted, no)
		if unknown[no] || known && want == pages {
			return nil
		}
		return report("postings: run %d has %d pages, recorded are %d", no, pages, want)
	})
	if err != nil {
		return err
	}
	for no, pages := range wanted {
		if pages != 0 {
			if err := report("postings: run %d has no pages, recorded are %d", no, pages); err != nil {
				return err
			}
		}
	}
	return nil
}
