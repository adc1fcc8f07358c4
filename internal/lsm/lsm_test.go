package lsm

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/store/driver"
)

// someTerm draws a term of few values, so that they meet, with zeros and ends that escaping must keep apart.
func someTerm(t *rapid.T) Term {
	value := rapid.StringOfN(rapid.RuneFrom([]rune("\x00\x01aé")), 0, 3, -1).Draw(t, "value")
	return Term{Space: rapid.Uint32Range(1, 3).Draw(t, "space"), Value: value}
}

// TestSpans: one of the spans that were added is in another, or none.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, kept Spans
		for range 20 {
			lo, n := rapid.Uint8Range(0, 9).Draw(t, "lo"), rapid.Uint8Range(1, 5).Draw(t, "n")
			s := Span{[]byte{lo}, []byte{lo + n}}
			want := slices.ContainsFunc(all, func(o Span) bool { return o.lo[0] >= lo && o.hi[0] <= lo+n })
			require.Equal(t, want, kept.In(s), "%v in %v", kept, s)
			all = append(all, s)
			kept.Add(s)
		}
	})
}

// TestKeys: keys sort as attributes, values and chunks do, come apart again, and lie in
// the spans of their values and in no others.
func TestKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, bound := someTerm(t), someTerm(t), someTerm(t)
		na, nb := rapid.Int64Range(0, 1<<50).Draw(t, "chunk"), rapid.Int64Range(0, 3).Draw(t, "other chunk")
		ka, kb := appendKey(nil, a, na), appendKey(nil, b, nb)
		want := int(a.Space) - int(b.Space)
		if want == 0 {
			want = strings.Compare(a.Value, b.Value)
		}
		if want == 0 {
			want = int(min(max(na-nb, -1), 1))
		}
		require.Equal(t, want < 0, bytes.Compare(ka, kb) < 0)
		require.Equal(t, want == 0, bytes.Equal(ka, kb))
		var p Posting
		require.NoError(t, p.decode(ka))
		require.Equal(t, []any{a.Space, a.Value, na}, []any{p.Space, string(p.Value), p.Chunk})

		require.Equal(t, a == b, Of(b).has(ka))
		require.Equal(t, a == b && nb <= na && na <= nb+2, Part(b, nb, nb+2).has(ka))
		hi := bound.Value
		require.Equal(t, a.Space == b.Space && a.Value >= b.Value && (hi == "" || a.Value < hi), Within(b.Space, b.Value, hi).has(ka))
		require.True(t, All.has(ka))
	})
	whole := appendKey(nil, Term{1, "a\x00b"}, 5000)
	for cut := range whole {
		require.ErrorIs(t, new(Posting).decode(whole[:cut]), driver.ErrCorrupt)
	}
}

// someEdits draws edits of few postings, and keeps in a model who has which value.
func someEdits(t *rapid.T, model map[Edit]bool) (list []Edit) {
	ids := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, bitmap.ChunkIDs+2))
	for range rapid.IntRange(0, 30).Draw(t, "edits") {
		e := Edit{Term: someTerm(t), ID: ids.Draw(t, "id"), Add: rapid.Bool().Draw(t, "add")}
		if rapid.IntRange(0, 20).Draw(t, "many") == 0 { // so that sets become bitmaps, and pages full
			for id := int64(1); id < 600; id++ {
				e.ID = id
				list = append(list, e)
			}
		}
		list = append(list, e)
	}
	for _, e := range list {
		add := e.Add
		e.Add = false
		if add {
			model[e] = true
		} else {
			delete(model, e)
		}
	}
	return list
}

func (s Span) has(key []byte) bool {
	return bytes.Compare(s.lo, key) <= 0 && bytes.Compare(key, s.hi) < 0
}

// someSpans draws all keys, a range of values, or some values.
func someSpans(t *rapid.T) []Span {
	switch lo, hi := someTerm(t), someTerm(t); rapid.IntRange(0, 2).Draw(t, "kind of spans") {
	case 0:
		return []Span{All}
	case 1:
		return []Span{Within(lo.Space, lo.Value, hi.Value)}
	}
	spans := make([]Span, rapid.IntRange(1, 5).Draw(t, "values"))
	for i := range spans {
		spans[i] = Of(someTerm(t))
	}
	return Disjoint(spans)
}

// held returns what a merger says.
func held(t *rapid.T, m *merger, spans []Span) map[Edit]bool {
	all, last := map[Edit]bool{}, []byte(nil)
	for p, err := range m.postings(nil, spans...) {
		require.NoError(t, err)
		key := appendKey(nil, Term{p.Space, string(p.Value)}, p.Chunk)
		require.True(t, last == nil || bytes.Compare(last, key) < 0, "keys come in order, each once")
		last = key
		ids, err := p.AppendIDs(nil)
		require.NoError(t, err)
		for _, id := range ids {
			all[Edit{Term: Term{p.Space, string(p.Value)}, ID: id}] = true
		}
	}
	return all
}

// testStore makes pages as a store does that is never read.
var testStore = NewStore("postings", nil, Options{Page: 960, Fan: fan, Piece: 2})

const fan = 4

// TestRuns: several runs say together what edits did one after the other, however many of them were compacted.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := map[Edit]bool{}
		var list [][]Page
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			list = append(list, testStore.Pages(someEdits(t, model)))
		}
		spans := someSpans(t)
		from := rapid.IntRange(0, len(list)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(list)).Draw(t, "to")
		out := compactPages(t, list[from:to], from == 0)
		list = slices.Concat(list[:from], [][]Page{out}, list[to:])
		var m merger
		for _, pages := range list {
			m.cursors = append(m.cursors, &cursor{pages: pagesFrom(pages, spans[0].lo)})
		}
		want := map[Edit]bool{}
		for e := range model {
			key := appendKey(nil, e.Term, bitmap.ChunkOf(e.ID))
			if slices.ContainsFunc(spans, func(s Span) bool { return s.has(key) }) {
				want[e] = true
			}
		}
		require.Equal(t, want, held(t, &m, spans))
	})
}

// TestDown: what goes through runs from the last entry to the first says the same as what
// goes forward, in the reverse order, however many pages it reads at once.
func TestDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var up, down merger
		runs := map[int64][]Page{}
		span := someSpans(t)[0]
		for i := range rapid.Int64Range(1, 5).Draw(t, "runs") {
			runs[i+1] = testStore.Pages(someEdits(t, map[Edit]bool{}))
			up.cursors = append(up.cursors, &cursor{pages: pagesFrom(runs[i+1], span.lo)})
			down.cursors = append(down.cursors, &cursor{run: i + 1, from: span.hi, down: true})
		}
		load := func(c *cursor) (pages []Page, err error) {
			for _, p := range slices.Backward(runs[c.run]) {
				if bytes.Compare(p.Low, c.from) < 0 && len(pages) < 3 {
					pages = append(pages, p)
				}
			}
			return pages, nil
		}
		type posting struct{ term, ids string }
		list := func(m *merger, load loader) (all []posting) {
			for p, err := range m.postings(load, span) {
				require.NoError(t, err)
				all = append(all, posting{string(appendKey(nil, Term{p.Space, string(p.Value)}, p.Chunk)), string(p.IDs)})
			}
			return all
		}
		want, got := list(&up, nil), list(&down, load)
		slices.Reverse(want)
		require.Equal(t, want, got)
	})
}

// compactPages makes one run of several, in pieces of any size.
func compactPages(t *rapid.T, inputs [][]Page, bottom bool) (out []Page) {
	span := All
	for {
		m := &merger{}
		for _, pages := range inputs {
			m.cursors = append(m.cursors, &cursor{pages: pagesFrom(pages, span.lo)})
		}
		require.NoError(t, m.seek(nil, span))
		p, err := m.piece(nil, Options{Page: 960, Piece: rapid.IntRange(1, 5).Draw(t, "pages")}, bottom)
		require.NoError(t, err)
		out = append(out, p.pages...)
		if p.last {
			break
		}
		span.lo = append(slices.Clip(p.to), 0)
	}
	if bottom {
		c := &cursor{pages: out}
		for require.NoError(t, c.next(nil)); !c.ended; require.NoError(t, c.next(nil)) {
			require.Empty(t, c.removes, "nothing is left to be removed")
			require.NotEmpty(t, c.adds)
		}
	}
	return out
}

// TestPagesBite: of a page in which a byte is another, or that ends early, nobody reads anything.
func TestPagesBite(t *testing.T) {
	var edits []Edit
	for i := range int64(20) {
		edits = append(edits, Edit{Term: Term{1, strings.Repeat("v", int(i))}, ID: 1 + i*5000, Add: i%2 == 0})
	}
	pages := testStore.Pages(edits)
	require.Len(t, pages, 1)
	read := func(p Page) error {
		c := &cursor{pages: []Page{p}}
		for {
			if err := c.next(nil); err != nil || c.ended {
				return err
			}
		}
	}
	require.NoError(t, read(pages[0]))
	for i := range pages[0].Body {
		body := slices.Clone(pages[0].Body)
		body[i] ^= 4
		require.ErrorIs(t, read(Page{pages[0].Low, body}), driver.ErrCorrupt)
		require.ErrorIs(t, read(Page{pages[0].Low, pages[0].Body[:i]}), driver.ErrCorrupt)
	}
	for i := range pages[0].Low {
		low := slices.Clone(pages[0].Low)
		low[i] ^= 4
		require.ErrorIs(t, read(Page{low, pages[0].Body}), driver.ErrCorrupt)
	}
}

// TestTree: whatever runs come and however compactions are interleaved, runs keep their
// order, few are left when nothing is to be done, and the list is read back as it was.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr Tree
		all := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(tr.jobs) > 0 && rapid.Bool().Draw(t, "compact") {
				i := rapid.IntRange(0, len(tr.jobs)-1).Draw(t, "job")
				from, to := tr.inputs(&tr.jobs[i])
				size := -tr.jobs[i].out.pages
				for _, r := range tr.runs[from:to] {
					size += r.pages
				}
				done := rapid.Bool().Draw(t, "done")
				before, stored := tr, tr.Encode()
				if done {
					tr.advance(i, somePiece(int(size), true), fan)
				} else {
					tr.advance(i, somePiece(rapid.IntRange(0, int(size)).Draw(t, "pages"), false), fan)
				}
				require.Equal(t, stored, before.Encode(), "a copy is left alone")
			} else {
				tr.Begin()
				n := rapid.IntRange(0, 300).Draw(t, "pages")
				all += int64(n)
				tr.publish(n, fan)
				tr.End()
			}
			requireSameTree(t, &tr)
			require.Equal(t, len(tr.jobs)+len(tr.dropped) > 0, tr.Owed() > 0)
			places := 0
			for i := range tr.jobs {
				from, to := tr.inputs(&tr.jobs[i])
				require.GreaterOrEqual(t, from, places, "compactions share no run")
				require.Greater(t, to, from)
				places = to
			}
		}
		for len(tr.jobs) > 0 {
			from, to := tr.inputs(&tr.jobs[0])
			size := -tr.jobs[0].out.pages
			for _, r := range tr.runs[from:to] {
				size += r.pages
			}
			tr.advance(0, somePiece(int(size), true), fan)
		}
		newer := int64(0)
		for i := len(tr.runs) - 1; i >= 0; i-- {
			require.True(t, newer == 0 || tr.runs[i].pages*(fan-1) > newer, "%v", tr.runs)
			newer += tr.runs[i].pages
		}
		require.Equal(t, all, newer)
	})
	whole := Tree{next: 9, runs: []run{{3, 7}, {4, 1}}, jobs: []compaction{{out: run{no: 9}, first: 3, count: 2, at: []byte("k")}}}
	stored := whole.Encode()
	for cut := range stored {
		_, _, err := Decode(stored[:cut])
		require.ErrorIs(t, err, driver.ErrCorrupt)
	}
	whole.jobs[0].count = 3
	_, _, err := Decode(whole.Encode())
	require.ErrorIs(t, err, driver.ErrCorrupt)
}

func somePiece(pages int, last bool) *piece {
	return &piece{pages: make([]Page, pages), to: []byte("k"), last: last}
}

// requireSameTree: what is stored of a tree is the tree.
func requireSameTree(t *rapid.T, tr *Tree) {
	got, _, err := Decode(tr.Encode())
	require.NoError(t, err)
	diff := cmp.Diff(tr, &got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Tree{}, run{}, leftover{}, compaction{}))
	require.Empty(t, diff)
}

// FuzzPostings: whatever a page with a right checksum or a list of runs holds, it is read or refused.
func FuzzPostings(f *testing.F) {
	edits := []Edit{{Term: Term{1, "a\x00"}, ID: 3, Add: true}, {Term: Term{1, "ab"}, ID: 9000}}
	f.Add(testStore.Pages(edits)[0].Body[4:])
	whole := Tree{next: 9, runs: []run{{3, 7}, {4, 1}}, dropped: []leftover{{run{2, 1}, []byte("k")}}, jobs: []compaction{{out: run{no: 9}, first: 3, count: 2}}}
	f.Add(whole.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p := Page{Low: []byte("low"), Body: append(make([]byte, 4), data...)}
		binary.LittleEndian.PutUint32(p.Body, p.checksum())
		m := merger{cursors: []*cursor{{pages: []Page{p}}, {pages: []Page{p}}}}
		for p, err := range m.postings(nil, Span{hi: []byte("z")}) {
			if err == nil {
				_, err = p.AppendIDs(nil)
			}
			if err != nil {
				require.ErrorIs(t, err, driver.ErrCorrupt)
			}
		}
		tree, _, err := Decode(data)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
			return
		}
		tree.Begin()
		tree.publish(1, fan)
		for len(tree.jobs) > 0 && len(data) < 1000 {
			tree.advance(0, somePiece(1, true), fan)
		}
		tree.Owed()
	})
}
