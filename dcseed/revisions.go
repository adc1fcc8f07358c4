package dcseed

import (
	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// population has all entities of one class, indexed from 0 through the data
// centres, and the order of their updates.
//
// Updates are numbered from 0. Update s (a slot) is of the entity at place s
// mod count in the order, and belongs to load block s div updates. The order is
// an affine map, so that the place of an entity is known without a table.
type population struct {
	class   Class
	perDC   uint64
	count   uint64
	updates uint64 // in a load block
	offset  uint64 // number of operations before these in a load block

	// index = (mul·place + add) mod count; inv is the inverse of mul.
	mul, inv, add uint64
}

func newPopulation(class Class, seed uint64, dcs, perDC, updates, offset int) population {
	p := population{class: class, perDC: uint64(perDC), count: uint64(dcs * perDC),
		updates: uint64(updates), offset: uint64(offset)}
	h := splitmix.Mix(seed ^ uint64(class)*splitmix.Step)
	p.add = splitmix.Below(h, p.count)
	// Start from the second quarter, so that neighbours are not updated
	// together.
	p.mul = p.count/4 + splitmix.Below(splitmix.Mix(h), p.count/2+1)
	for gcd(p.mul, p.count) != 1 {
		p.mul++
	}
	p.mul %= p.count
	p.inv = inverse(p.mul, p.count)
	return p
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// inverse returns the multiplicative inverse of a modulo n, for coprime a and n
// below 2³¹.
func inverse(a, n uint64) uint64 {
	r0, r1 := int64(n), int64(a)
	t0, t1 := int64(0), int64(1)
	for r1 != 0 {
		q := r0 / r1
		r0, r1 = r1, r0-q*r1
		t0, t1 = t1, t0-q*t1
	}
	if t0 < 0 {
		t0 += int64(n)
	}
	return uint64(t0) % n
}

// place returns the position of an entity in the order. Products stay below
// 2⁵⁴, because a class has fewer than 10⁸ entities.
func (p *population) place(index uint64) uint64 {
	return (index + p.count - p.add) * p.inv % p.count
}

// at returns the entity at a place.
func (p *population) at(place uint64) uint64 { return (p.mul*place + p.add) % p.count }

func (p *population) ref(index uint64) Ref {
	return Ref{p.class, int(index/p.perDC) + 1, int(index%p.perDC) + 1}
}

func (p *population) index(r Ref) uint64 { return uint64(r.DC-1)*p.perDC + uint64(r.N-1) }

// revisions returns how many updates an entity has had in the first blocks of
// the load.
func (p *population) revisions(index, blocks uint64) uint64 {
	slots, place := blocks*p.updates, p.place(index)
	if slots <= place {
		return 0
	}
	return (slots-1-place)/p.count + 1
}

// spot is the position of an operation in the stream.
type spot struct {
	block   uint64
	ordinal uint64 // within the block, from 0
}

func (s spot) tx() uint32 { return uint32(s.ordinal / opsPerTx) }
func (s spot) op() uint32 { return uint32(s.ordinal % opsPerTx) }

func (s spot) sequence() uint64 { return entity.MakeSequence(s.block, s.tx(), s.op()) }

// creation returns the position of an entity's creation in the initial state:
// data centre by data centre, nodes before workloads.
func (m *Model) creation(r Ref) spot {
	position := uint64(r.DC-1)*(m.nodes.perDC+m.workloads.perDC) + uint64(r.N-1)
	if r.Class == ClassWorkload {
		position += m.nodes.perDC
	}
	perBlock := uint64(m.cfg.PerBlock)
	return spot{FirstBlock + position/perBlock, position % perBlock}
}

// spot returns the position of a revision in the load; revision 0 is the
// entity's creation.
func (m *Model) spot(r Ref, revision uint64) spot {
	if revision == 0 {
		return m.creation(r)
	}
	p := m.population(r.Class)
	slot := p.place(p.index(r)) + (revision-1)*p.count
	return spot{m.firstLoad + slot/p.updates, p.offset + slot%p.updates}
}

// version is the state of an entity in one revision.
type version struct {
	revision uint64
	from     uint64 // block
	expires  uint64 // block
}

// version returns the version that begins with a revision.
func (m *Model) version(r Ref, revision uint64) version {
	from := m.spot(r, revision).block
	return version{revision, from, entity.AddBlocks(from, m.btl(r, revision))}
}

// versionAt returns the version visible at a block, and false when there is
// none, because the entity is not created yet or has expired.
func (m *Model) versionAt(r Ref, block uint64) (version, bool) {
	revision := uint64(0)
	if block >= m.firstLoad {
		p := m.population(r.Class)
		revision = p.revisions(p.index(r), block-m.firstLoad+1)
	}
	v := m.version(r, revision)
	return v, v.from <= block && block < v.expires
}

// revives reports whether an entity has expired before a revision, which then
// creates it again.
func (m *Model) revives(r Ref, revision uint64) bool {
	return m.version(r, revision-1).expires <= m.spot(r, revision).block
}

// born returns the position of the creation that a revision belongs to: the
// last revision that created the entity, found by going back.
func (m *Model) born(r Ref, revision uint64) spot {
	if p := m.population(r.Class); p.count/p.updates+1 < ShortestLife {
		// After the first update, the next update always comes before the
		// entity expires. So only the time before the first update can be too
		// long.
		revision = min(revision, 1)
	}
	for revision > 0 && !m.revives(r, revision) {
		revision--
	}
	return m.spot(r, revision)
}

// btl returns the lifetime, in blocks, of a revision.
func (m *Model) btl(r Ref, revision uint64) uint64 {
	s := m.source(r)
	band := draw(lifetimes, s.draw(fieldLifeBand, revision))
	return band[0] + splitmix.Below(s.draw(fieldLife, revision), band[1]-band[0]+1)
}
