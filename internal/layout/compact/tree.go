package compact

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
)

// tree is a log-structured merge tree of postings (O'Neil et al., The Log-Structured
// Merge-Tree, 1996): sorted runs, each of what a batch of blocks has changed, and
// compactions, each of which makes one run of several neighbouring ones. Nothing is
// changed in a run once it is in the tree. It is a value: methods that change it leave
// copies alone.
type tree struct {
	next    int64 // number of the next run
	writing int64 // the run of the batch that is being merged, or 0
	written int64 // that or, of the same batch, an earlier one: it is in the tree
	runs    []run // oldest first
	jobs    []compaction
	dropped []leftover
}

// run is sorted pages of postings.
type run struct {
	no    int64
	pages int64
}

// leftover is a run that is no longer in the tree, and may have pages from a key on. Where
// that is is kept: to Postgres deleted rows are in the way until they are vacuumed.
type leftover struct {
	run
	from []byte
}

// compaction is a run that is being made of others.
type compaction struct {
	out   run    // so far
	first int64  // the oldest input
	count int64  // of inputs, neighbours in the tree
	at    []byte // the key up to which it is done, empty at the beginning
}

// fan is how much work compactions save up for: a run is merged with the newer ones
// when these are together fan-1 times as large, so a posting is written anew about
// each time that the tree has grown to fan times its size.
const fan = 4

// maxRuns is how many runs a tree may have before compactions are also worked out in write
// transactions, when nobody did so beforehand.
const maxRuns = 24

// number returns a new number of a run.
func (t *tree) number() int64 {
	t.next++
	return t.next
}

// publish puts the run of the batch into the tree.
func (t *tree) publish(pages int) {
	if pages > 0 {
		t.runs = append(slices.Clip(t.runs), run{t.writing, int64(pages)})
	}
	t.written = t.writing
	t.plan()
}

// begin gives a batch a run to write. What another has written and not published is
// given up.
func (t *tree) begin() {
	if t.writing != t.written {
		t.dropped = append(slices.Clip(t.dropped), leftover{run: run{no: t.writing}})
	}
	t.writing = t.number()
}

// end is called when the batch is merged.
func (t *tree) end() { t.writing, t.written = 0, 0 }

// plan begins a compaction of the newest runs when it is time: of those that no
// other compaction has, from the oldest that is small beside all newer ones.
func (t *tree) plan() {
	free := 0
	for i := range t.jobs {
		_, to := t.inputs(&t.jobs[i])
		free = max(free, to)
	}
	from, newer := len(t.runs), int64(0)
	for i := len(t.runs) - 1; i >= free; i-- {
		if i < len(t.runs)-1 && (fan-1)*t.runs[i].pages <= newer {
			from = i
		}
		newer += t.runs[i].pages
	}
	if from < len(t.runs) {
		c := compaction{out: run{no: t.number()}, first: t.runs[from].no, count: int64(len(t.runs) - from)}
		t.jobs = append(slices.Clip(t.jobs), c)
	}
}

// inputs returns the places of a compaction's inputs in the tree, from and below.
func (t *tree) inputs(c *compaction) (from, to int) {
	from = slices.IndexFunc(t.runs, func(r run) bool { return r.no == c.first })
	if from < 0 || c.count < 1 || int64(len(t.runs)-from) < c.count {
		return 0, 0 // damage: see decodeTree
	}
	return from, from + int(c.count)
}

// advance records what a compaction has written. When that was the last of it, its
// run takes the place of its inputs.
func (t *tree) advance(i int, pages int, at []byte, done bool) {
	t.jobs = slices.Clone(t.jobs)
	c := &t.jobs[i]
	c.out.pages += int64(pages)
	c.at = at
	if !done {
		return
	}
	from, to := t.inputs(c)
	t.dropped = slices.Clip(t.dropped)
	for _, r := range t.runs[from:to] {
		t.dropped = append(t.dropped, leftover{run: r})
	}
	var out []run
	if c.out.pages > 0 {
		out = append(out, c.out)
	}
	t.runs = slices.Concat(t.runs[:from], out, t.runs[to:])
	t.jobs = slices.Delete(t.jobs, i, i+1)
	t.plan()
}

// owed is how many pages are still to be written or dropped, about: 0 only when there
// is nothing to do.
func (t *tree) owed() (n int64) {
	for i := range t.jobs {
		size := int64(0)
		from, to := t.inputs(&t.jobs[i])
		for _, r := range t.runs[from:to] {
			size += r.pages
		}
		n += 1 + max(size-t.jobs[i].out.pages, 0) // pieces may end with pages that are not full
	}
	for _, r := range t.dropped {
		n += 1 + r.pages/dropWeight
	}
	return n
}

// dropWeight is how many pages are dropped in the time that one is written in.
const dropWeight = 8

// forest is the trees as progress stores them.
type forest [trees]tree

func (f *forest) begin() {
	for i := range f {
		f[i].begin()
	}
}

func (f *forest) end() {
	for i := range f {
		f[i].end()
	}
}

func (f *forest) encode() (buf []byte) {
	for i := range f {
		buf = packed.AppendText(buf, f[i].encode())
	}
	return buf
}

func decodeForest(stored []byte) (f forest, err error) {
	r := packed.Reader{Rest: stored}
	for i := range f {
		if f[i], err = decodeTree(r.Text()); err != nil {
			return f, err
		}
	}
	if r.Torn || len(r.Rest) > 0 {
		return f, errTornTree
	}
	return f, nil
}

// forestCache keeps what was decoded last: views between two slices of merging read
// the same.
type forestCache struct {
	last atomic.Pointer[decodedForest]
}

type decodedForest struct {
	stored []byte
	forest forest
}

func (c *forestCache) decode(stored []byte) (forest, error) {
	if last := c.last.Load(); last != nil && bytes.Equal(last.stored, stored) {
		return last.forest, nil
	}
	f, err := decodeForest(stored)
	if err == nil {
		c.last.Store(&decodedForest{stored, f})
	}
	return f, err
}

var errTornTree = fmt.Errorf("%w: the list of runs is torn", driver.ErrCorrupt)

// encode returns the stored form of a tree.
func (t *tree) encode() []byte {
	buf := make([]byte, 0, 256)
	number := func(list ...int64) {
		for _, n := range list {
			buf = binary.AppendUvarint(buf, uint64(n))
		}
	}
	number(t.next, t.writing, t.written, int64(len(t.runs)))
	for _, r := range t.runs {
		number(r.no, r.pages)
	}
	number(int64(len(t.dropped)))
	for _, d := range t.dropped {
		number(d.no, d.pages)
		buf = packed.AppendText(buf, d.from)
	}
	number(int64(len(t.jobs)))
	for _, c := range t.jobs {
		number(c.out.no, c.out.pages, c.first, c.count)
		buf = packed.AppendText(buf, c.at)
	}
	return buf
}

// decodeTree is the inverse of encode.
func decodeTree(stored []byte) (t tree, err error) {
	r := packed.Reader{Rest: stored}
	number := func() int64 { return int64(r.Uint()) }
	text := func() []byte { return append([]byte(nil), r.Text()...) }
	t.next, t.writing, t.written = number(), number(), number()
	for n := r.Count(); n > 0 && !r.Torn; n-- {
		t.runs = append(t.runs, run{number(), number()})
	}
	for n := r.Count(); n > 0 && !r.Torn; n-- {
		t.dropped = append(t.dropped, leftover{run{number(), number()}, text()})
	}
	for n := r.Count(); n > 0 && !r.Torn; n-- {
		c := compaction{run{number(), number()}, number(), number(), text()}
		if _, to := t.inputs(&c); to == 0 {
			r.Tear()
		}
		t.jobs = append(t.jobs, c)
	}
	if r.Torn || len(r.Rest) > 0 {
		return t, errTornTree
	}
	return t, nil
}
