package lsm

import (
	"context"
	"slices"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// Compactor prepares the output of compactions concurrently with the writer. It
// may read the inputs in several views, because runs in the tree do not change.
// Prepare is called by one goroutine, Step and Finish by another.
type Compactor struct {
	store *Store

	mu     sync.Mutex
	pieces map[place]*piece // prepared and not yet written
}

// place is how far a compaction has come.
type place struct {
	out, first, count int64  // identify the compaction
	at                string // the key up to which it is done
}

func (c *compaction) place() place { return place{c.out.no, c.first, c.count, string(c.at)} }

// piece is some pages of a compaction. It does not change once it is made.
type piece struct {
	from  place
	to    []byte // the key up to which the compaction is done with it
	pages []Page
	last  bool
}

// NewCompactor returns a compactor of the trees of a store.
func NewCompactor(s *Store) *Compactor { return &Compactor{store: s} }

// Prepare makes pieces for the compactions of a committed tree, the newest
// compaction first, until Options.Waiting pages wait. It drops pieces that are
// written or belong to no compaction of the tree.
func (c *Compactor) Prepare(ctx context.Context, q driver.Querier, t *Tree) error {
	waiting, kept := 0, map[place]*piece{}
	for i := range t.jobs {
		pieces, _, _ := c.prepared(t.jobs[i])
		for _, p := range pieces {
			kept[p.from] = p
			waiting += len(p.pages) + 1
		}
	}
	c.mu.Lock()
	c.pieces = kept
	c.mu.Unlock()
	for i := len(t.jobs) - 1; i >= 0; i-- {
		_, job, ended := c.prepared(t.jobs[i])
		for !ended && waiting < c.store.opts.Waiting {
			p, err := c.store.nextPiece(ctx, q, t, &job)
			if err != nil {
				return err
			}
			c.mu.Lock()
			c.pieces[p.from] = p
			c.mu.Unlock()
			waiting += len(p.pages) + 1
			job.at, ended = p.to, p.last
		}
	}
	return nil
}

// prepared returns the pieces of a compaction that wait to be written, in order,
// and the compaction as it is after them. Ended reports whether the last piece is
// among them.
func (c *Compactor) prepared(job compaction) (pieces []*piece, after compaction, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := c.pieces[job.place()]; p != nil && !ended; p = c.pieces[job.place()] {
		pieces = append(pieces, p)
		job.at, ended = p.to, p.last
	}
	return pieces, job, ended
}

// nextPiece makes the piece that continues a compaction.
func (s *Store) nextPiece(ctx context.Context, q driver.Querier, t *Tree, job *compaction) (*piece, error) {
	from, to := t.inputs(job)
	span := All
	if len(job.at) > 0 {
		span.lo = append(slices.Clip(job.at), 0)
	}
	m, err := s.merger(ctx, q, t.runs[from:to], span, false)
	if err != nil {
		return nil, err
	}
	load := s.loader(ctx, q)
	if err := m.seek(load, span); err != nil {
		return nil, err
	}
	// Removals have nothing to overrule when the inputs include the oldest run.
	p, err := m.piece(load, s.opts, from == 0)
	if err != nil {
		return nil, err
	}
	p.from = job.place()
	return p, nil
}

// pieceEntries is how many entries a page is made of at most, however few are
// left of them. It bounds the work of a piece.
const pieceEntries = 256

// piece makes pages of the next entries: Options.Piece of them, or fewer when
// little is left of many entries. With bottom it drops removals.
func (m *merger) piece(load loader, o Options, bottom bool) (*piece, error) {
	out, w := &piece{}, pageWriter{size: o.Page}
	for n := 0; len(w.pages) < o.Piece; n++ {
		e, ok, err := m.next(load)
		if err != nil {
			return nil, err
		}
		if ok {
			if bottom {
				e.removes = nil
			}
			if len(e.adds)+len(e.removes) > 0 {
				w.add(e)
			}
			out.to = append(out.to[:0], e.key...)
		}
		if !ok || n >= o.Piece*pieceEntries {
			out.last = !ok
			w.flush()
			break
		}
	}
	if w.open.Body != nil { // the next piece makes this page again
		out.to = w.to
	}
	out.pages = w.pages
	return out, nil
}

// Ready reports whether every piece is prepared, or half of Options.Waiting pages.
func (c *Compactor) Ready(t *Tree) bool {
	pages, all := 0, true
	for i := range t.jobs {
		pieces, _, ended := c.prepared(t.jobs[i])
		for _, p := range pieces {
			pages += len(p.pages)
		}
		all = all && ended
	}
	return all || pages >= c.store.opts.Waiting/2
}

// Step writes the next piece of a compaction, small ones first, and drops some
// pages of runs that were compacted. With inline it makes the piece if it is not
// prepared. It returns about how many pages it wrote, or 0 when there is nothing
// that it may do.
func (c *Compactor) Step(ctx context.Context, tx driver.Tx, t *Tree, inline bool) (wrote int, err error) {
	for i := len(t.jobs) - 1; i >= 0 && wrote == 0; i-- {
		job := &t.jobs[i]
		c.mu.Lock()
		next := c.pieces[job.place()]
		c.mu.Unlock()
		if next == nil && !inline {
			continue
		}
		if next == nil {
			if next, err = c.store.nextPiece(ctx, tx, t, job); err != nil {
				return 0, err
			}
		}
		if err := c.store.Insert(ctx, tx, job.out.no, next.pages); err != nil {
			return 0, err
		}
		t.advance(i, next, c.store.opts.Fan)
		wrote = len(next.pages) + 1
	}
	if len(t.dropped) == 0 {
		return wrote, nil
	}
	return max(wrote, 1+c.store.opts.Piece/dropWeight), c.store.drop(ctx, tx, t, 2*c.store.opts.Piece)
}

// Finish does every compaction that is due.
func (c *Compactor) Finish(ctx context.Context, tx driver.Tx, t *Tree) error {
	for {
		if wrote, err := c.Step(ctx, tx, t, true); wrote == 0 || err != nil {
			return err
		}
	}
}
