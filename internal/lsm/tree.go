// Package lsm is a log-structured merge tree of postings inside a database
// (O'Neil et al., The Log-Structured Merge-Tree, 1996). A posting has the ids that
// have a term. The package does not know the meaning of ids and terms.
//
// A batch of edits is written as one sorted run, in pages that are rows of a
// table. A run does not change once it is in the tree. A look-up reads all runs,
// and newer runs overrule older ones. Compactions make one run of several
// neighbouring runs. A Tree lists the runs; its owner stores it in the same
// transaction as the pages.
package lsm

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
)

// Tree is the runs of a tree, its compactions and its dropped runs. Methods that
// change it leave copies alone.
type Tree struct {
	next      int64 // number of the next run
	writing   int64 // the run of the batch that is being written, or 0
	published int64 // the run of that batch that is in the tree: writing, or an earlier one
	runs      []run // oldest first
	jobs      []compaction
	dropped   []leftover
}

// run is sorted pages of entries.
type run struct {
	no    int64
	pages int64
}

// leftover is a run that is no longer in the tree, and may have pages from a key
// on. The key is kept because on Postgres a scan from the beginning of the run
// would pass every deleted row until it is vacuumed.
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

// Batch returns the run that a batch of edits is being written to, or 0.
func (t *Tree) Batch() int64 { return t.writing }

// Published returns the run of the prepared batch that is in the tree, or 0.
func (t *Tree) Published() int64 { return t.published }

// Runs returns how many runs there are.
func (t *Tree) Runs() int { return len(t.runs) }

// Same reports whether two trees have the same runs, and so the same postings.
func (t *Tree) Same(other *Tree) bool { return slices.Equal(t.runs, other.runs) }

// Number returns a number that no run has, for rows that the owner keeps in the
// store's table.
func (t *Tree) Number() int64 {
	t.next++
	return t.next
}

// Begin gives a batch a run to write. The run of another batch that was not
// published is dropped.
func (t *Tree) Begin() {
	if t.writing != t.published {
		t.dropped = append(slices.Clip(t.dropped), leftover{run: run{no: t.writing}})
	}
	t.writing = t.Number()
}

// publish puts the run of the batch into the tree.
func (t *Tree) publish(pages int, fan int64) {
	if pages > 0 {
		t.runs = append(slices.Clip(t.runs), run{t.writing, int64(pages)})
	}
	t.published = t.writing
	t.plan(fan)
}

// End is called when the batch is done.
func (t *Tree) End() { t.writing, t.published = 0, 0 }

// Clear empties the tree after its pages were deleted.
func (t *Tree) Clear() { *t = Tree{next: t.next} }

// plan begins a compaction of the newest runs, if one is due. It considers only
// runs newer than the inputs of other compactions. It starts at the oldest run
// whose newer runs together have at least fan-1 times its pages.
func (t *Tree) plan(fan int64) {
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
		c := compaction{out: run{no: t.Number()}, first: t.runs[from].no, count: int64(len(t.runs) - from)}
		t.jobs = append(slices.Clip(t.jobs), c)
	}
}

// inputs returns the places of a compaction's inputs in the tree, from and below.
func (t *Tree) inputs(c *compaction) (from, to int) {
	from = slices.IndexFunc(t.runs, func(r run) bool { return r.no == c.first })
	if from < 0 || c.count < 1 || int64(len(t.runs)-from) < c.count {
		return 0, 0 // damage: see Decode
	}
	return from, from + int(c.count)
}

// advance records a written piece of a compaction. After the last piece, the
// output run replaces the inputs.
func (t *Tree) advance(i int, p *piece, fan int64) {
	t.jobs = slices.Clone(t.jobs)
	c := &t.jobs[i]
	c.out.pages += int64(len(p.pages))
	c.at = p.to
	if !p.last {
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
	t.plan(fan)
}

// dropWeight is the number of pages that are dropped in the time in which one is
// written.
const dropWeight = 8

// Owed returns the compaction debt: about how many pages are still to be
// written, where dropWeight dropped pages count as one. It is 0 only without
// compactions and dropped runs.
func (t *Tree) Owed() (n int64) {
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

// Encode returns the stored form of a tree.
func (t *Tree) Encode() []byte {
	buf := make([]byte, 0, 256)
	number := func(list ...int64) {
		for _, n := range list {
			buf = binary.AppendUvarint(buf, uint64(n))
		}
	}
	number(t.next, t.writing, t.published, int64(len(t.runs)))
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

// Decode is the inverse of Encode, and returns the bytes behind the tree. The error
// is driver.ErrCorrupt.
func Decode(stored []byte) (t Tree, rest []byte, err error) {
	r := packed.Reader{Rest: stored}
	number := func() int64 { return int64(r.Uint()) }
	text := func() []byte { return append([]byte(nil), r.Text()...) }
	t.next, t.writing, t.published = number(), number(), number()
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
	if r.Torn {
		return t, nil, fmt.Errorf("%w: the list of runs is torn", driver.ErrCorrupt)
	}
	return t, r.Rest, nil
}
