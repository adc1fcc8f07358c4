package compact

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

	"github.com/varvedb/varve/store/driver"
)

// someTerm draws a term of few values, so that they meet, with zeros and ends that
// escaping must keep apart.
func someTerm(t *rapid.T) term {
	value := rapid.StringOfN(rapid.RuneFrom([]rune("\x00\x01aé")), 0, 3, -1).Draw(t, "value")
	return term{attr: rapid.Int64Range(1, 3).Draw(t, "attribute"), value: value}
}

// TestKeys: keys sort as attributes, values and chunks do, come apart again, and lie in
// the spans of their values and in no others.
func TestKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, bound := someTerm(t), someTerm(t), someTerm(t)
		na, nb := rapid.Int64Range(0, 1<<50).Draw(t, "chunk"), rapid.Int64Range(0, 3).Draw(t, "other chunk")
		ka, kb := appendKey(nil, a.attr, a.value, na), appendKey(nil, b.attr, b.value, nb)
		want := int(a.attr - b.attr)
		if want == 0 {
			want = strings.Compare(a.value, b.value)
		}
		if want == 0 {
			want = int(min(max(na-nb, -1), 1))
		}
		require.Equal(t, want < 0, bytes.Compare(ka, kb) < 0)
		require.Equal(t, want == 0, bytes.Equal(ka, kb))
		attr, value, number, err := decodeKey(ka, nil)
		require.NoError(t, err)
		require.Equal(t, []any{a.attr, a.value, na}, []any{attr, string(value), number})

		require.Equal(t, a == b, keysOf(b.attr, b.value).has(ka))
		hi := bound.value
		require.Equal(t, a.attr == b.attr && a.value >= b.value && (hi == "" || a.value < hi), keysWithin(b.attr, b.value, hi).has(ka))
		require.True(t, everyKey.has(ka))
	})
	whole := appendKey(nil, 1, "a\x00b", 5000)
	for cut := range whole {
		_, _, _, err := decodeKey(whole[:cut], nil)
		require.ErrorIs(t, err, driver.ErrCorrupt)
	}
}

// someEdits draws edits of few postings, and keeps in a model who has which value.
func someEdits(t *rapid.T, model map[edit]bool) (list []edit) {
	ids := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, chunkIDs+2))
	for range rapid.IntRange(0, 30).Draw(t, "edits") {
		e := edit{term: someTerm(t), past: rapid.Bool().Draw(t, "past"), id: ids.Draw(t, "id"), add: rapid.Bool().Draw(t, "add")}
		if rapid.IntRange(0, 20).Draw(t, "many") == 0 { // so that sets become bitmaps, and pages full
			for id := int64(1); id < 600; id++ {
				e.id = id
				list = append(list, e)
			}
		}
		list = append(list, e)
	}
	for _, e := range list {
		add := e.add
		e.add = false
		if add {
			model[e] = true
		} else {
			delete(model, e)
		}
	}
	return list
}

func (s keySpan) has(key []byte) bool {
	return bytes.Compare(s.lo, key) <= 0 && bytes.Compare(key, s.hi) < 0
}

// someSpans draws all keys, a range of values, or some values.
func someSpans(t *rapid.T) []keySpan {
	switch lo, hi := someTerm(t), someTerm(t); rapid.IntRange(0, 2).Draw(t, "kind of spans") {
	case 0:
		return []keySpan{everyKey}
	case 1:
		return []keySpan{keysWithin(lo.attr, lo.value, hi.value)}
	}
	spans := make([]keySpan, rapid.IntRange(1, 5).Draw(t, "values"))
	for i := range spans {
		e := someTerm(t)
		spans[i] = keysOf(e.attr, e.value)
	}
	return disjoint(spans)
}

// held returns what a merger of a tree says.
func held(t *rapid.T, m *merger, spans []keySpan, past bool) map[edit]bool {
	all, last := map[edit]bool{}, []byte(nil)
	require.NoError(t, m.each(nil, spans, func(p *posting) error {
		require.True(t, last == nil || bytes.Compare(last, p.key) < 0, "keys come in order, each once")
		last = append(last[:0], p.key...)
		attr, value, ids, err := p.decode(nil, nil)
		for _, id := range ids {
			all[edit{term: term{attr, string(value)}, past: past, id: id}] = true
		}
		return err
	}))
	return all
}

// TestRuns: several runs say together what edits did one after the other, however many
// of them were compacted.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := map[edit]bool{}
		var runs [trees][][]page
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			for tree, pages := range pagesOf(someEdits(t, model)) {
				runs[tree] = append(runs[tree], pages)
			}
		}
		spans := someSpans(t)
		for tree := range runs {
			list := runs[tree]
			from := rapid.IntRange(0, len(list)-1).Draw(t, "from")
			to := rapid.IntRange(from+1, len(list)).Draw(t, "to")
			out := compactPages(t, list[from:to], from == 0)
			list = slices.Concat(list[:from], [][]page{out}, list[to:])
			var m merger
			for _, pages := range list {
				m.cursors = append(m.cursors, &cursor{pages: pagesFrom(pages, spans[0].lo)})
			}
			past := tree == pastTree
			want := map[edit]bool{}
			for e := range model {
				key := appendKey(nil, e.attr, e.value, chunkOf(e.id))
				if e.past == past && slices.ContainsFunc(spans, func(s keySpan) bool { return s.has(key) }) {
					want[e] = true
				}
			}
			require.Equal(t, want, held(t, &m, spans, past))
		}
	})
}

// compactPages makes one run of several, in pieces of any size.
func compactPages(t *rapid.T, inputs [][]page, bottom bool) (out []page) {
	c := compactor{bottom: bottom}
	for _, pages := range inputs {
		c.merger.cursors = append(c.merger.cursors, &cursor{pages: pages})
	}
	require.NoError(t, c.merger.seek(nil, nil))
	for {
		p, err := c.piece(nil, rapid.IntRange(1, 5).Draw(t, "pages"))
		require.NoError(t, err)
		out = append(out, p.pages...)
		if p.last {
			break
		}
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

// TestPagesBite: of a page in which a byte is another, or that ends early, nobody reads
// anything.
func TestPagesBite(t *testing.T) {
	var edits []edit
	for i := range int64(20) {
		edits = append(edits, edit{term: term{1, strings.Repeat("v", int(i))}, id: 1 + i*5000, add: i%2 == 0})
	}
	pages := pagesOf(edits)[currentTree]
	require.Len(t, pages, 1)
	read := func(p page) error {
		c := &cursor{pages: []page{p}}
		for {
			if err := c.next(nil); err != nil || c.ended {
				return err
			}
		}
	}
	require.NoError(t, read(pages[0]))
	for i := range pages[0].body {
		body := slices.Clone(pages[0].body)
		body[i] ^= 4
		require.ErrorIs(t, read(page{pages[0].low, body}), driver.ErrCorrupt)
		require.ErrorIs(t, read(page{pages[0].low, pages[0].body[:i]}), driver.ErrCorrupt)
	}
	for i := range pages[0].low {
		low := slices.Clone(pages[0].low)
		low[i] ^= 4
		require.ErrorIs(t, read(page{low, pages[0].body}), driver.ErrCorrupt)
	}
}

// TestTree: whatever runs come and however compactions are interleaved, runs keep their
// order, few are left when nothing is to be done, and the list is read back as it was.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tree
		all := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(tr.jobs) > 0 && rapid.Bool().Draw(t, "compact") {
				i := rapid.IntRange(0, len(tr.jobs)-1).Draw(t, "job")
				from, to := tr.inputs(&tr.jobs[i])
				size := int64(0)
				for _, r := range tr.runs[from:to] {
					size += r.pages
				}
				done := rapid.Bool().Draw(t, "done")
				before, stored := tr, tr.encode()
				if done {
					tr.advance(i, int(size-tr.jobs[i].out.pages), []byte("z"), true)
				} else {
					tr.advance(i, rapid.IntRange(0, 400).Draw(t, "pages"), []byte("k"), false)
				}
				require.Equal(t, stored, before.encode(), "a copy is left alone")
			} else {
				tr.begin()
				n := rapid.IntRange(0, 300).Draw(t, "pages")
				all += int64(n)
				tr.publish(n)
				tr.end()
			}
			requireSameTree(t, &tr)
			require.Equal(t, len(tr.jobs)+len(tr.dropped) > 0, tr.owed() > 0)
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
			tr.advance(0, int(size), nil, true)
		}
		newer := int64(0)
		for i := len(tr.runs) - 1; i >= 0; i-- {
			require.True(t, newer == 0 || tr.runs[i].pages*(fan-1) > newer, "%v", tr.runs)
			newer += tr.runs[i].pages
		}
		require.Equal(t, all, newer)
	})
	whole := tree{next: 9, runs: []run{{3, 7}, {4, 1}}, jobs: []compaction{{out: run{no: 9}, first: 3, count: 2, at: []byte("k")}}}
	stored := whole.encode()
	for cut := range stored {
		_, err := decodeTree(stored[:cut])
		require.ErrorIs(t, err, driver.ErrCorrupt)
	}
	whole.jobs[0].count = 3
	_, err := decodeTree(whole.encode())
	require.ErrorIs(t, err, driver.ErrCorrupt)
}

// requireSameTree: what is stored of a tree is the tree.
func requireSameTree(t *rapid.T, tr *tree) {
	got, err := decodeTree(tr.encode())
	require.NoError(t, err)
	diff := cmp.Diff(tr, &got, cmpopts.EquateEmpty(), cmp.AllowUnexported(tree{}, run{}, leftover{}, compaction{}))
	require.Empty(t, diff)
}

// FuzzPostings: whatever a page with a right checksum or a list of runs holds, it is
// read or refused.
func FuzzPostings(f *testing.F) {
	edits := []edit{{term: term{1, "a\x00"}, id: 3, add: true}, {term: term{1, "ab"}, id: 9000}}
	f.Add(pagesOf(edits)[currentTree][0].body[4:])
	whole := tree{next: 9, runs: []run{{3, 7}, {4, 1}}, dropped: []leftover{{run{2, 1}, []byte("k")}}, jobs: []compaction{{out: run{no: 9}, first: 3, count: 2}}}
	f.Add((&forest{whole, whole}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p := page{low: []byte("low"), body: append(make([]byte, 4), data...)}
		binary.LittleEndian.PutUint32(p.body, p.checksum())
		m := merger{cursors: []*cursor{{pages: []page{p}}, {pages: []page{p}}}}
		err := m.each(nil, []keySpan{{hi: []byte("z")}}, func(p *posting) error {
			_, _, _, err := p.decode(nil, nil)
			return err
		})
		if err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
		}
		trees, err := decodeForest(data)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
			return
		}
		for i := range trees {
			trees[i].begin()
			trees[i].publish(1)
			for len(trees[i].jobs) > 0 && len(data) < 1000 {
				trees[i].advance(0, 1, nil, true)
			}
			trees[i].owed()
		}
	})
}
