package lsm

import (
	"context"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// piece is some pages of the output of a compaction.
type piece struct {
	to    []byte // the key up to which the compaction is done with it
	pages []Page
	last  bool
}

// Compact writes the next piece of a compaction, small ones first, and drops some
// pages of runs that were compacted. It returns about how many pages it wrote, or
// 0 when nothing is due.
func (s *Store) Compact(ctx context.Context, tx driver.Tx, t *Tree) (wrote int, err error) {
	if i := len(t.jobs) - 1; i >= 0 {
		p, err := s.nextPiece(ctx, tx, t, &t.jobs[i])
		if err != nil {
			return 0, err
		}
		if err := s.Insert(ctx, tx, t.jobs[i].out.no, p.pages); err != nil {
			return 0, err
		}
		t.advance(i, p, s.opts.Fan)
		wrote = len(p.pages) + 1
	}
	if len(t.dropped) == 0 {
		return wrote, nil
	}
	return max(wrote, 1+s.opts.Piece/dropWeight), s.drop(ctx, tx, t, 2*s.opts.Piece)
}

// CompactAll does every compaction that is due.
func (s *Store) CompactAll(ctx context.Context, tx driver.Tx, t *Tree) error {
	for {
		if wrote, err := s.Compact(ctx, tx, t); wrote == 0 || err != nil {
			return err
		}
	}
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
	return m.piece(load, s.opts, from == 0)
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
