package compact

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// narrow calls f with the postings of a tree that spans have, which come in order and do
// not overlap, having read many at once. It returns false when those of one span lie on
// more pages than a limit; not all were handed out then.
func (l *Layout) narrow(ctx context.Context, q driver.Querier, tree int, t *tree, spans []keySpan, limit int64, f func(*posting) error) (whole bool, err error) {
	if len(t.runs) == 0 {
		return true, nil
	}
	for spans := range slices.Chunk(spans, max(maxPlaces/len(t.runs), 1)) {
		m, n, err := l.readSpans(ctx, q, tree, t.runs, spans, limit)
		if err != nil || n >= limit {
			return false, err
		}
		if err := m.each(nil, spans, f); err != nil {
			return false, err
		}
	}
	return true, nil
}

// maxPlaces bounds the look-ups of one statement: each is of a span in a run.
const maxPlaces = 256

// readSpans reads the pages of runs that postings of spans may lie on.
func (l *Layout) readSpans(ctx context.Context, q driver.Querier, tree int, runs []run, spans []keySpan, limit int64) (m *merger, n int64, err error) {
	size := listSize(len(runs) * len(spans))
	args := make([]any, 0, 3*size+1)
	cursors := make([]cursor, len(runs))
	m = &merger{cursors: make([]*cursor, len(runs)), at: make([]*cursor, 0, len(runs))}
	for i := range runs {
		m.cursors[i] = &cursors[i]
		for _, s := range spans {
			args = append(args, runs[i].no, s.lo, s.hi)
		}
	}
	for len(args) < 3*size {
		args = append(args, int64(0), spans[0].lo, spans[0].hi) // no run
	}
	text := l.text(treeNames[tree]+"_pages", size)
	err = eachRow(ctx, q, text, append(args, limit), func(rows driver.Rows) error {
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
	for i := range cursors {
		cursors[i].pages = inOrder(cursors[i].pages)
	}
	return m, n, nil
}

// inOrder sorts pages; one on which several spans lie comes as often.
func inOrder(pages []page) []page {
	byLow := func(a, b page) int { return bytes.Compare(a.low, b.low) }
	if !slices.IsSortedFunc(pages, byLow) {
		slices.SortFunc(pages, byLow)
	}
	return slices.CompactFunc(pages, func(a, b page) bool { return bytes.Equal(a.low, b.low) })
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

// each calls f with the postings of spans, which come in order and do not overlap.
func (m *merger) each(load loader, spans []keySpan, f func(*posting) error) error {
	for _, s := range spans {
		if err := m.seek(load, s.lo); err != nil {
			return err
		}
		for {
			p, ok, err := m.next(load)
			if err != nil || !ok {
				return err
			}
			if bytes.Compare(p.key, s.hi) >= 0 {
				break
			}
			if err := f(&p); err != nil {
				return err
			}
		}
	}
	return nil
}

// stream is narrow for a span of any length: it reads some pages at a time. Over are the
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
	return m.each(l.loader(ctx, q, tree), []keySpan{s}, f)
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
