package lsm

import (
	"context"
	"slices"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// Compactor prepares the output of compactions concurrently with the writer. It
// may read the inputs in several views, because runs in the tree do not change. Prepare is called by one goroutine, Step and Finish by another.
type Compactor struct {
	store *Store
	open  *work // that made the last piece; Prepare's alone

	mu     sync.Mutex
	pieces map[place]*piece // that wait to be written, by where they begin
}

// place is a key up to which a compaction is done.
type place struct {
	out, first, count int64 // of the compaction
	from              string
}

func placeOf(job *compaction, at []byte) place {
	return place{job.out.no, job.first, job.count, string(at)}
}

// piece is some pages of a compaction. It does not change once it is made.
type piece struct {
	to    []byte // the key that it ends with
	pages []Page
	last  bool
}

// work is a compaction that is being worked out.
type work struct {
	at     place
	bottom bool // the inputs include the oldest run, so removals are dropped
	merger *merger
	w      pageWriter
}

// NewCompactor returns a compactor of the trees of a store.
func NewCompactor(s *Store) *Compactor { return &Compactor{store: s} }

// Prepare works out pieces for the compactions of a committed tree, the newest first,
// until Options.Waiting is reached. It drops written pieces and unknown ones.
func (c *Compactor) Prepare(ctx context.Context, q driver.Querier, t *Tree) error {
	waiting, kept := 0, map[place]*piece{}
	for i := range t.jobs {
		_, _ = c.each(&t.jobs[i], func(at place, p *piece) {
			kept[at] = p
			waiting += len(p.pages) + 1
		})
	}
	c.mu.Lock()
	c.pieces = kept
	c.mu.Unlock()
	for i := len(t.jobs) - 1; i >= 0; i-- {
		job := t.jobs[i]
		at, ended := c.each(&job, func(place, *piece) {})
		for !ended && waiting < c.store.opts.Waiting {
			job.at = at
			p, err := c.next(ctx, q, t, &job)
			if err != nil {
				return err
			}
			c.mu.Lock()
			c.pieces[placeOf(&job, at)] = p
			c.mu.Unlock()
			waiting += len(p.pages) + 1
			at, ended = p.to, p.last
		}
	}
	return nil
}

// each calls f with the pieces of a job that wait, in order. It returns up to where they
// are, and whether the last one is among them.
func (c *Compactor) each(job *compaction, f func(place, *piece)) (at []byte, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at = job.at; !ended; {
		where := placeOf(job, at)
		p := c.pieces[where]
		if p == nil {
			break
		}
		f(where, p)
		at, ended = p.to, p.last
	}
	return at, ended
}

// next makes the piece that a compaction writes next, with the work that has made the one
// before it, if that is the last one.
func (c *Compactor) next(ctx context.Context, q driver.Querier, t *Tree, job *compaction) (*piece, error) {
	w := c.open
	c.open = nil // it may stop in the middle
	if w == nil || w.at != placeOf(job, job.at) {
		var err error
		if w, err = c.store.newWork(ctx, q, t, job); err != nil {
			return nil, err
		}
	}
	p, err := w.piece(c.store.loader(ctx, q), c.store.opts.Piece)
	if err == nil && !p.last {
		w.at = placeOf(job, p.to)
		c.open = w
	}
	return p, err
}

// newWork returns what goes on where a compaction is.
func (s *Store) newWork(ctx context.Context, q driver.Querier, t *Tree, job *compaction) (*work, error) {
	from, to := t.inputs(job)
	var lo []byte
	if len(job.at) > 0 {
		lo = append(slices.Clip(job.at), 0)
	}
	m, err := s.merger(ctx, q, t.runs[from:to], lo)
	if err != nil {
		return nil, err
	}
	return &work{bottom: from == 0, merger: m, w: pageWriter{size: s.opts.Page}}, m.seek(s.loader(ctx, q), lo)
}

// pieceEntries is how many entries a page is made of at the most, however few are left of them.
const pieceEntries = 256

// piece makes the next piece, of so many pages, or fewer when little is left of many entries.
func (w *work) piece(load loader, pages int) (*piece, error) {
	out := &piece{}
	for n := 0; len(w.w.pages) < pages; n++ {
		e, ok, err := w.merger.next(load)
		if err != nil {
			return out, err
		}
		if ok {
			if w.bottom {
				e.removes = nil
			}
			if len(e.adds)+len(e.removes) > 0 {
				w.w.add(e)
			}
			out.to = append(out.to[:0], e.key...)
		}
		if !ok || n >= pages*pieceEntries {
			out.last = !ok
			w.w.flush()
			break
		}
	}
	if w.w.open.Body != nil { // it is the next piece's
		out.to = append(out.to[:0], w.w.to...)
	}
	out.pages, w.w.pages = w.w.pages, nil
	return out, nil
}

// Ready reports whether every piece is prepared, or half of Options.Waiting pages.
func (c *Compactor) Ready(t *Tree) bool {
	pages, all := 0, true
	for i := range t.jobs {
		_, ended := c.each(&t.jobs[i], func(_ place, p *piece) { pages += len(p.pages) })
		all = all && ended
	}
	return all || pages >= c.store.opts.Waiting/2
}

// Step writes the next piece of a compaction, small ones first, and drops some pages of
// runs that were compacted. With inline it works the piece out if it has to. It returns
// how many pages it wrote, about, or 0 when there is nothing that it may do.
func (c *Compactor) Step(ctx context.Context, tx driver.Tx, t *Tree, inline bool) (wrote int, err error) {
	for i := len(t.jobs) - 1; i >= 0; i-- {
		job := &t.jobs[i]
		c.mu.Lock()
		next := c.pieces[placeOf(job, job.at)]
		c.mu.Unlock()
		if next == nil {
			if !inline {
				continue
			}
			w, err := c.store.newWork(ctx, tx, t, job)
			if err != nil {
				return 0, err
			}
			if next, err = w.piece(c.store.loader(ctx, tx), c.store.opts.Piece); err != nil {
				return 0, err
			}
		}
		if err := c.store.Insert(ctx, tx, job.out.no, next.pages); err != nil {
			return 0, err
		}
		t.advance(i, next, c.store.opts.Fan)
		wrote = len(next.pages) + 1
		break
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
