package lsm

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/bitmap"
)

// Edit is one id that has a term from now on, or no longer.
type Edit struct {
	Term
	ID  int64
	Add bool
}

// Pages makes the pages of a run that says what edits do. The last edit of a term and id counts.
func (s *Store) Pages(edits []Edit) []Page {
	w := pageWriter{size: s.opts.Page}
	var key, sets []byte
	var adds, removes bitmap.Chunk
	order := inOrder(edits)
	for from, to := 0, 0; from < len(order); from = to {
		first := &edits[order[from].at]
		for to = from + 1; to < len(order) && order[to].prefix == order[from].prefix && edits[order[to].at].samePosting(first); to++ {
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
			for _, p := range order[from:to] {
				edits[p.at].apply(&adds, &removes)
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

// prefixed is where an edit is in the list, with the beginning of its value, so that
// comparing most of them needs no text.
type prefixed struct {
	prefix uint64
	at     int32
}

// inOrder sorts edits by the key of their posting. Edits of one posting keep
// their order. It sorts each space separately, because there are few spaces.
func inOrder(edits []Edit) []prefixed {
	ends := map[uint32]int{}
	for i := range edits {
		ends[edits[i].Space]++
	}
	spaces, sum := slices.Sorted(maps.Keys(ends)), 0
	for _, space := range spaces {
		ends[space], sum = sum, sum+ends[space]
	}
	order := make([]prefixed, len(edits))
	for i := range edits {
		e := &edits[i]
		var prefix [8]byte
		copy(prefix[:], e.Value)
		order[ends[e.Space]] = prefixed{binary.BigEndian.Uint64(prefix[:]), int32(i)}
		ends[e.Space]++
	}
	from := 0
	for _, space := range spaces {
		slices.SortFunc(order[from:ends[space]], func(a, b prefixed) int {
			if a.prefix != b.prefix {
				return cmp.Compare(a.prefix, b.prefix)
			}
			x, y := &edits[a.at], &edits[b.at]
			if c := strings.Compare(x.Value, y.Value); c != 0 {
				return c
			}
			return cmp.Or(cmp.Compare(bitmap.ChunkOf(x.ID), bitmap.ChunkOf(y.ID)), cmp.Compare(a.at, b.at))
		})
		from = ends[space]
	}
	return order
}
