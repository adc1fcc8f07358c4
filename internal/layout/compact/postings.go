package compact

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// narrow calls f with the postings of a tree that a span has, in order, having read
// them at once. It returns false when they lie on more pages than a limit; not all were
// handed out then.
func (l *Layout) narrow(ctx context.Context, q driver.Querier, tree int, t *tree, s keySpan, limit int64, f func(*posting) error) (whole bool, err error) {
	if len(t.runs) == 0 {
		return true, nil
	}
	m, n, err := l.readSpan(ctx, q, tree, t.runs, s, limit)
	if err != nil || n >= limit {
		return false, err
	}
	return true, m.each(nil, s, f)
}

// readSpan reads the pages of runs that postings of a span may lie on.
func (l *Layout) readSpan(ctx context.Context, q driver.Querier, tree int, runs []run, s keySpan, limit int64) (m *merger, n int64, err error) {
	size := listSize(len(runs))
	args := make([]any, 0, size+3)
	cursors := make([]cursor, len(runs))
	m = &merger{cursors: make([]*cursor, len(runs)), at: make([]*cursor, 0, len(runs))}
	for i := range runs {
		args = append(args, runs[i].no)
		m.cursors[i] = &cursors[i]
	}
	for len(args) < size {
		args = append(args, int64(0)) // no run
	}
	text := l.text(treeNames[tree]+"_pages", size)
	err = eachRow(ctx, q, text, append(args, s.lo, s.hi, limit), func(rows driver.Rows) error {
		var no int64
		var p page
		if err := rows.Scan(&no, &p.low, &p.body); err != nil {
			return err
		}
		n++
		for i := range runs {
			if runs[i].no == no {
				cursors[i].pages = append(cursors[i].pages, p)
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read postings: %w", err)
	}
	byLow := func(a, b page) int { return bytes.Compare(a.low, b.low) }
	for i := range cursors {
		if !slices.IsSortedFunc(cursors[i].pages, byLow) {
			slices.SortFunc(cursors[i].pages, byLow)
		}
	}
	return m, n, nil
}

// listSize returns how long a list of runs in a statement is made. The sizes of other
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

// each calls f with the postings of a span.
func (m *merger) each(load loader, s keySpan, f func(*posting) error) error {
	if err := m.seek(load, s.lo); err != nil {
		return err
	}
	for {
		p, ok, err := m.next(load)
		if err != nil || !ok || bytes.Compare(p.key, s.hi) >= 0 {
			return err
		}
		if err := f(&p); err != nil {
			return err
		}
	}
}

// stream is narrow for spans of any length: it reads some pages at a time. Over are the
// pages of runs that are not in the tree yet.
func (l *Layout) stream(ctx context.Context, q driver.Querier, tree int, t *tree, over [][]page, s keySpan, f func(*posting) error) error {
	var m merger
	for _, r := range t.runs {
		c, err := l.cursor(ctx, q, tree, r.no, s.lo)
		if err != nil {
			return err
		}
		m.cursors = append(m.cursors, c)
	}
	for _, pages := range over {
		m.cursors = append(m.cursors, &cursor{pages: pagesFrom(pages, s.lo)})
	}
	return m.each(l.loader(ctx, q, tree), s, f)
}

// pagesFrom returns the pages on which keys from one on lie.
func pagesFrom(pages []page, lo []byte) []page {
	i, found := slices.BinarySearchFunc(pages, lo, func(p page, lo []byte) int { return bytes.Compare(p.low, lo) })
	if !found {
		i = max(i-1, 0)
	}
	return pages[i:]
}

// addRun makes a run of edits and puts it into the tree at once.
func (l *Layout) addRun(ctx context.Context, tx driver.Tx, p *progress, edits []edit) error {
	for tree, pages := range pagesOf(edits) {
		if len(pages) == 0 {
			continue
		}
		t := &p.trees[tree]
		t.begin()
		if err := l.insertPages(ctx, tx, tree, t.writing, pages); err != nil {
			return err
		}
		t.publish(len(pages))
		t.end()
	}
	if !p.crowded() {
		return nil
	}
	return l.compactNow(ctx, tx, p)
}
