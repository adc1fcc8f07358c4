package lsm

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/store/driver"
)

// piece is a part of the output of a compaction.
type piece struct {
	to    []byte // the key up to which the compaction has then come
	pages []Page
	last  bool
}

// Compact writes the next piece of the newest compaction, which is the smallest,
// and drops some pages of runs that were compacted. It returns about how many
// pages it wrote, or 0 when nothing is due.
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

// pieceEntries bounds the work of a piece: the entries that it reads for each of
// its pages. Few of them may remain.
const pieceEntries = 256

// piece makes pages of the next entries: Options.Piece of them, or fewer when few
// of the entries remain. With bottom it drops removals.
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

// Edit adds a term to an id, or removes it.
type Edit struct {
	Term
	ID  int64
	Add bool
}

// Pages returns the pages of a run with the effects of edits. Of several edits of
// one term and id the last one counts.
func (s *Store) Pages(edits []Edit) []Page {
	w := pageWriter{size: s.opts.Page}
	var key, sets []byte
	var adds, removes bitmap.Chunk
	order := inOrder(edits)
	for from, to := 0, 0; from < len(order); from = to {
		first := &edits[order[from]]
		for to = from + 1; to < len(order) && edits[order[to]].samePosting(first); to++ {
		}
		sets = sets[:0]
		n := 0
		if to == from+1 {
			sets = binary.LittleEndian.AppendUint16(sets, bitmap.Offset(first.ID))
			if first.Add {
				n = len(sets)
			}
		} else {
			clear(adds[:])
			clear(removes[:])
			for _, i := range order[from:to] {
				edits[i].apply(&adds, &removes)
			}
			sets = adds.AppendTo(sets)
			n = len(sets)
			sets = removes.AppendTo(sets)
		}
		key = appendKey(key[:0], first.Term, bitmap.ChunkOf(first.ID))
		w.add(entry{key, sets[:n], sets[n:]})
	}
	w.flush()
	return w.pages
}

func (e *Edit) apply(adds, removes *bitmap.Chunk) {
	if !e.Add {
		adds, removes = removes, adds
	}
	adds.Add(bitmap.Offset(e.ID))
	removes.Remove(bitmap.Offset(e.ID))
}

func (e *Edit) samePosting(other *Edit) bool {
	return e.Space == other.Space && bitmap.ChunkOf(e.ID) == bitmap.ChunkOf(other.ID) && e.Value == other.Value
}

// inOrder returns the indexes of edits, sorted by the key of their posting.
// Edits of one posting keep their order. It sorts each space separately, because
// there are few spaces.
func inOrder(edits []Edit) []int32 {
	ends := map[uint32]int{}
	for i := range edits {
		ends[edits[i].Space]++
	}
	spaces, sum := slices.Sorted(maps.Keys(ends)), 0
	for _, space := range spaces {
		ends[space], sum = sum, sum+ends[space]
	}
	order := make([]int32, len(edits))
	for i := range edits {
		space := edits[i].Space
		order[ends[space]] = int32(i)
		ends[space]++
	}
	from := 0
	for _, space := range spaces {
		slices.SortFunc(order[from:ends[space]], func(a, b int32) int {
			x, y := &edits[a], &edits[b]
			if c := strings.Compare(x.Value, y.Value); c != 0 {
				return c
			}
			return cmp.Or(cmp.Compare(bitmap.ChunkOf(x.ID), bitmap.ChunkOf(y.ID)), cmp.Compare(a, b))
		})
		from = ends[space]
	}
	return order
}
