package scaler

import (
	"slices"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// slot is one entity to be created, in the order of creation.
type slot struct {
	kind        int
	number      uint64 // within the kind, from 0
	first, last uint64 // numbers of the first and the last of its run
	cycle       uint64
	born        uint64 // block
}

// cycle is the creations of one cycle.
type cycle struct {
	number  uint64
	start   uint64 // first block
	slots   []slot
	batches []batch

	// Reused memory.
	runs   []run
	blocks []uint64
}

// batch has the slots that one block creates.
type batch struct {
	block      uint64
	begin, end int
}

type run struct {
	kind   int
	length uint64
}

// counts returns how many entities of each kind a cycle of n entities has: in
// proportion, and at least one of each kind if n allows it, as in the first
// cycle.
func (m *model) counts(n uint64) []uint64 {
	full := m.entities
	counts := make([]uint64, len(m.kinds))
	var sum, given uint64
	for i := range m.kinds {
		sum += m.kinds[i].Count
		counts[i] = sum*n/full - given
		given += counts[i]
	}
	if n >= 2*uint64(len(counts)) {
		for i := range counts {
			if counts[i] == 0 {
				most := slices.Index(counts, slices.Max(counts))
				counts[most]--
				counts[i]++
			}
		}
	}
	return counts
}

// computeCycle computes a cycle of n entities over some blocks. All cycles before it are
// complete ones.
func (m *model) computeCycle(c *cycle, number, n, blocks uint64) {
	c.number = number
	c.start = firstBlock + number*m.CycleBlocks

	// Divide the entities into runs and shuffle them.
	r := rng{derive(splitmix.Mix(m.seed)+c.number, forRuns)}
	c.runs = c.runs[:0]
	for kind, left := range m.counts(n) {
		for left > 0 {
			length := min(left, m.kinds[kind].Runs.draw(&r))
			c.runs = append(c.runs, run{kind, length})
			left -= length
		}
	}
	for i := len(c.runs) - 1; i > 0; i-- {
		j := r.below(uint64(i) + 1)
		c.runs[i], c.runs[j] = c.runs[j], c.runs[i]
	}
	if c.number == 0 {
		// Put kinds that others refer to first, so that every reference has a
		// target.
		slices.SortStableFunc(c.runs, func(a, b run) int { return m.kinds[a.kind].rank - m.kinds[b.kind].rank })
	}

	// Make a slot for each entity.
	next := make([]uint64, len(m.kinds))
	for i := range next {
		next[i] = c.number * m.kinds[i].Count
	}
	c.slots = c.slots[:0]
	for _, r := range c.runs {
		first := next[r.kind]
		next[r.kind] += r.length
		for n := first; n < next[r.kind]; n++ {
			c.slots = append(c.slots, slot{kind: r.kind, number: n, first: first, last: next[r.kind] - 1, cycle: c.number})
		}
	}

	// Cut the slots into batches and give each batch a block.
	r = rng{derive(splitmix.Mix(m.seed)+c.number, forBatches)}
	c.batches = c.batches[:0]
	for at := 0; at < len(c.slots); {
		size := min(len(c.slots)-at, int(m.Batches.draw(&r)))
		c.batches = append(c.batches, batch{begin: at, end: at + size})
		at += size
	}
	c.blocks = c.blocks[:0]
	for b := range blocks {
		c.blocks = append(c.blocks, c.start+b)
	}
	for i := range c.batches {
		j := uint64(i) + r.below(blocks-uint64(i))
		c.blocks[i], c.blocks[j] = c.blocks[j], c.blocks[i]
	}
	slices.Sort(c.blocks[:len(c.batches)])
	for i := range c.batches {
		b := &c.batches[i]
		b.block = c.blocks[i]
		for j := b.begin; j < b.end; j++ {
			c.slots[j].born = b.block
		}
	}
}

// step is one operation on an entity after its creation.
type step struct {
	block   uint64
	op      entity.Kind
	btl     uint64 // Update, ExtendBTL
	version uint64 // number of Updates up to this step
	owner   uint64 // number of ChangeOwners up to this step
}

// life is all operations on an entity; the first is its creation.
type life struct {
	steps [maxSteps + 2]step
	n     int
}

func (l *life) add(s step) {
	l.steps[l.n] = s
	l.n++
}

// never is an unlimited lifetime: creation block plus lifetime saturates at
// entity.MaxBlock.
const never = entity.MaxBlock

// live computes the life of an entity.
func (m *model) live(s *slot, seed uint64) (l life) {
	k := &m.kinds[s.kind]
	r := rng{derive(seed, forLife)}
	end, op, btl := uint64(never), entity.Kind(0), uint64(never)
	switch at := r.below(k.fates); {
	case at < k.Fate.Persistent:
	case at < k.Fate.Persistent+k.Fate.Ephemeral:
		btl = k.Fate.Lifetime.draw(&r)
		end, op = s.born+btl, entity.Expire
	default:
		end, op = s.born+k.Fate.DeletedAfter.draw(&r), entity.Delete
	}
	last := step{block: s.born, op: entity.Create, btl: btl}
	l.add(last)
	for i := range k.Steps {
		spec := &k.Steps[i]
		if !r.chance(spec.Permille) {
			continue
		}
		next := last
		next.block += spec.After.draw(&r)
		next.op = spec.Op
		if next.block >= end || spec.Op == entity.ExtendBTL && op != entity.Expire {
			continue
		}
		switch spec.Op {
		case entity.ExtendBTL:
			end += k.Fate.Lifetime.draw(&r)
			next.btl = end - next.block
		case entity.Update:
			next.version++
			if op == entity.Expire {
				next.btl = end - next.block
			}
		case entity.ChangeOwner:
			next.owner++
		}
		last = next
		l.add(last)
	}
	if op != 0 {
		last.block, last.op = end, op
		l.add(last)
	}
	return l
}
