package compact

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// compactor works out what a compaction writes, piece by piece. Its inputs do not
// change, so it may read them in one view after another. Layout says whose its fields
// are.
type compactor struct {
	tree   int // 0 or 1
	job    compaction
	bottom bool // nothing older is in the tree: what is removed is gone

	merger merger
	w      pageWriter

	at      []byte  // up to where pieces are made
	waiting []piece // to be written
	ended   bool    // the last one was made
}

// piece is some pages of a compaction. It does not change once it is made.
type piece struct {
	from  []byte // the key that it begins after
	to    []byte // and that it ends with
	pages []page
	last  bool
}

// The pages that are read at once, that are worked out together, and that may wait.
const (
	readPages    = 64
	piecePages   = 128
	waitingPages = 2048
)

// piecePostings is how many postings a page is made of at the most, however few it
// becomes.
const piecePostings = 256

// loader returns what reads runs of a tree.
func (l *Layout) loader(ctx context.Context, q driver.Querier, tree int) loader {
	return func(run int64, from []byte) (pages []page, err error) {
		args := []any{run, from, int64(readPages)}
		err = eachRow(ctx, q, l.sql[treeNames[tree]+"_run"], args, func(rows driver.Rows) error {
			var p page
			err := rows.Scan(&p.low, &p.body)
			pages = append(pages, p)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read a run: %w", err)
		}
		return pages, nil
	}
}

// cursor returns a cursor that is at or before a key of a run.
func (l *Layout) cursor(ctx context.Context, q driver.Querier, tree int, run int64, lo []byte) (*cursor, error) {
	c := &cursor{run: run, from: []byte{}}
	if len(lo) == 0 {
		return c, nil
	}
	return c, eachRow(ctx, q, l.sql[treeNames[tree]+"_run_start"], []any{run, lo}, func(rows driver.Rows) error {
		return rows.Scan(&c.from)
	})
}

// newCompactor returns a compactor that goes on where a compaction is.
func (l *Layout) newCompactor(ctx context.Context, q driver.Querier, tree int, t *tree, job compaction) (*compactor, error) {
	from, to := t.inputs(&job)
	c := &compactor{tree: tree, job: job, bottom: from == 0, at: job.at}
	var lo []byte
	if len(job.at) > 0 {
		lo = append(slices.Clip(job.at), 0)
	}
	for _, r := range t.runs[from:to] {
		cursor, err := l.cursor(ctx, q, tree, r.no, lo)
		if err != nil {
			return nil, err
		}
		c.merger.cursors = append(c.merger.cursors, cursor)
	}
	return c, c.merger.seek(l.loader(ctx, q, tree), lo)
}

// piece makes the next piece, of so many pages, or fewer when little is left of many
// postings. Whoever wants another one hands it over first: the next begins at at.
func (c *compactor) piece(load loader, pages int) (piece, error) {
	out := piece{from: c.at}
	for n := 0; len(c.w.pages) < pages; n++ {
		p, ok, err := c.merger.next(load)
		if err != nil {
			return out, err
		}
		if ok {
			c.add(&p)
			out.to = append(out.to[:0], p.key...)
		}
		if !ok || n >= pages*piecePostings {
			out.last = !ok
			c.w.flush()
			break
		}
	}
	if c.w.open.body != nil { // it is the next piece's
		out.to = append(out.to[:0], c.w.to...)
	}
	out.pages, c.w.pages = c.w.pages, nil
	return out, nil
}

// add writes a posting, unless nothing is left of it.
func (c *compactor) add(p *posting) {
	if c.bottom {
		p.removes = nil
	}
	if len(p.adds)+len(p.removes) > 0 {
		c.w.add(p.key, p.adds, p.removes)
	}
}

// does tells whether a compactor is one of a job of a tree.
func (c *compactor) does(tree int, job *compaction) bool {
	return c.tree == tree && c.job.out.no == job.out.no && c.job.first == job.first && c.job.count == job.count
}

// prepareCompaction works out pieces for the compactions of a committed state, the
// newest first, until enough wait.
func (l *Layout) prepareCompaction(ctx context.Context, v *view) error {
	p := &v.p
	l.forgetCompactors(p)
	for tree := range p.trees {
		for i := range p.trees[tree].jobs {
			l.compactorFor(tree, &p.trees[tree].jobs[i]) // gives back what is written
		}
	}
	for tree := range p.trees {
		t := &p.trees[tree]
		for i := len(t.jobs) - 1; i >= 0; i-- {
			if l.waitingPages() >= waitingPages {
				return nil
			}
			if err := l.preparePieces(ctx, v.q, tree, t, &t.jobs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Layout) preparePieces(ctx context.Context, q driver.Querier, tree int, t *tree, job *compaction) error {
	c := l.compactorFor(tree, job)
	if c == nil {
		var err error
		if c, err = l.newCompactor(ctx, q, tree, t, *job); err != nil {
			return err
		}
		l.mu.Lock()
		l.compactors = append(l.compactors, c)
		l.mu.Unlock()
	}
	load := l.loader(ctx, q, tree)
	for !c.ended && l.waitingPages() < waitingPages {
		next, err := c.piece(load, l.piecePages())
		if err != nil {
			l.forgetCompactors(&progress{}) // they may have stopped in the middle
			return err
		}
		l.mu.Lock()
		c.at, c.ended = next.to, next.last
		c.waiting = append(c.waiting, next)
		l.mu.Unlock()
	}
	return nil
}

func (l *Layout) piecePages() int { return min(piecePages, max(l.opts.Steps/2, 1)) }

// compactorOf returns the compactor of a job, or nil. The caller holds l.mu.
func (l *Layout) compactorOf(tree int, job *compaction) *compactor {
	i := slices.IndexFunc(l.compactors, func(c *compactor) bool { return c.does(tree, job) })
	if i < 0 {
		return nil
	}
	return l.compactors[i]
}

// place returns where the piece that begins after a key waits: behind all others when it
// is the next to be made, and -1 when no piece begins there. The caller holds
// Layout.mu.
func (c *compactor) place(from []byte) int {
	i := slices.IndexFunc(c.waiting, func(p piece) bool { return bytes.Equal(p.from, from) })
	if i < 0 && !c.ended && bytes.Equal(c.at, from) {
		return len(c.waiting)
	}
	return i
}

// compactorFor returns the compactor that goes on where a committed job is, or nil.
// Pieces before that are done with.
func (l *Layout) compactorFor(tree int, job *compaction) *compactor {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.compactorOf(tree, job)
	if c == nil {
		return nil
	}
	i := c.place(job.at)
	if i < 0 {
		l.compactors = slices.DeleteFunc(l.compactors, func(other *compactor) bool { return other == c })
		return nil
	}
	c.waiting = slices.Clone(c.waiting[i:]) // pages of the others are given back
	return c
}

// forgetCompactors forgets those of jobs that are not there.
func (l *Layout) forgetCompactors(p *progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compactors = slices.DeleteFunc(l.compactors, func(c *compactor) bool {
		return !slices.ContainsFunc(p.trees[c.tree].jobs, func(job compaction) bool { return c.does(c.tree, &job) })
	})
}

func (l *Layout) waitingPages() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.compactors {
		for i := range c.waiting {
			n += len(c.waiting[i].pages) + 1
		}
	}
	return n
}

// compactionReady tells whether half of what may wait waits, or all there is. The caller
// holds l.mu.
func (l *Layout) compactionReady() bool {
	pages, all := 0, true
	for tree := range l.known.trees {
		jobs := l.known.trees[tree].jobs
		for i := range jobs {
			n, ended := l.waitingFor(tree, &jobs[i])
			pages += n
			all = all && ended
		}
	}
	return all || pages >= waitingPages/2
}

// waitingFor returns how many pages wait for a job, and whether these are its last. The
// caller holds l.mu.
func (l *Layout) waitingFor(tree int, job *compaction) (pages int, ended bool) {
	c := l.compactorOf(tree, job)
	if c == nil {
		return 0, false
	}
	i := c.place(job.at)
	if i < 0 {
		return 0, false
	}
	for _, p := range c.waiting[i:] {
		pages += len(p.pages)
	}
	return pages, c.ended
}

// prepared returns the piece that a job is to write next, if it was worked out.
func (l *Layout) prepared(tree int, job *compaction) (piece, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.compactorOf(tree, job)
	if c == nil {
		return piece{}, false
	}
	i := c.place(job.at)
	if i < 0 || i == len(c.waiting) {
		return piece{}, false
	}
	return c.waiting[i], true
}

// compact writes the next piece of a compaction and drops some pages of runs that were
// compacted. With inline it works the piece out if it has to. It returns how many pages
// it wrote, about, or 0 when there is nothing that it may do.
func (l *Layout) compact(ctx context.Context, tx driver.Tx, p *progress, inline bool) (did int, err error) {
	for tree := range p.trees {
		t := &p.trees[tree]
		for i := len(t.jobs) - 1; i >= 0; i-- {
			next, ok := l.prepared(tree, &t.jobs[i])
			if !ok && inline {
				c, err := l.newCompactor(ctx, tx, tree, t, t.jobs[i])
				if err != nil {
					return 0, err
				}
				if next, err = c.piece(l.loader(ctx, tx, tree), l.piecePages()); err != nil {
					return 0, err
				}
				ok = true
			}
			if !ok {
				continue
			}
			if err := l.insertPages(ctx, tx, tree, t.jobs[i].out.no, next.pages); err != nil {
				return 0, err
			}
			t.advance(i, len(next.pages), next.to, next.last)
			_, err := l.drop(ctx, tx, tree, t)
			return len(next.pages) + 1, err
		}
	}
	for tree := range p.trees {
		if did, err := l.drop(ctx, tx, tree, &p.trees[tree]); did || err != nil {
			return 1 + l.piecePages()/dropWeight, err
		}
	}
	return 0, nil
}

// compactNow does every compaction that is due.
func (l *Layout) compactNow(ctx context.Context, tx driver.Tx, p *progress) error {
	for {
		if did, err := l.compact(ctx, tx, p, true); did == 0 || err != nil {
			return err
		}
	}
}

// drop deletes some pages of a run that is no longer in the tree.
func (l *Layout) drop(ctx context.Context, tx driver.Tx, tree int, t *tree) (did bool, err error) {
	if len(t.dropped) == 0 {
		return false, nil
	}
	name, d := treeNames[tree], t.dropped[0]
	if d.from == nil {
		d.from = []byte{}
	}
	var bound []byte
	err = eachRow(ctx, tx, l.sql[name+"_run_bound"], []any{d.no, d.from, int64(2 * l.piecePages())}, func(rows driver.Rows) error {
		return rows.Scan(&bound)
	})
	if err != nil {
		return false, fmt.Errorf("drop a run: %w", err)
	}
	if bound != nil {
		_, err = tx.Exec(ctx, l.sql["drop_"+name+"_pages"], d.no, d.from, bound)
		d.from = bound
		t.dropped = slices.Concat([]leftover{d}, t.dropped[1:])
	} else {
		_, err = tx.Exec(ctx, l.sql["drop_"+name+"_run"], d.no, d.from)
		t.dropped = t.dropped[1:]
	}
	if err != nil {
		return false, fmt.Errorf("drop a run: %w", err)
	}
	return true, nil
}

// insertPages writes pages of a run.
func (l *Layout) insertPages(ctx context.Context, tx driver.Tx, tree int, run int64, pages []page) error {
	rows := make([]any, 0, 3*len(pages))
	for _, p := range pages {
		rows = append(rows, run, p.low, p.body)
	}
	return tx.Insert(ctx, treeTables[tree], rows)
}
