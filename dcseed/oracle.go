package dcseed

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Answer is what a store says to a Query.
type Answer struct {
	Keys   []entity.Key   // of all but NodeState, in order
	Entity *entity.Entity // of NodeState; nil when the node is not visible
}

// Oracle knows the answers. It holds 8 bytes for each node of all data centres
// and nothing for workloads, takes a fraction of a microsecond a node to build,
// never changes, and is safe for concurrent use.
type Oracle struct {
	model *Model
	// shelves has the nodes by data centre, region and vm_type, cheapest first.
	shelves [][]shelf
}

// shelf is the nodes of one region and vm_type.
type shelf []shelved

// shelved is a node in 8 bytes: its number and what a match looks at.
type shelved struct {
	n      uint32
	traits uint32 // price<<16 | indexes of hours<<8, ram<<4 and cpu
}

func (s shelved) price() uint32 { return s.traits >> 16 }

func (s shelved) suits(w *Workload) bool {
	return cpuCounts[s.traits&15].value >= w.ReqCPU &&
		ramSizes[s.traits>>4&15].value >= w.ReqRAM &&
		availHours[s.traits>>8&15].value >= w.MaxHours
}

// NewOracle looks at every node of the model once.
func NewOracle(m *Model) *Oracle {
	o := &Oracle{model: m, shelves: make([][]shelf, m.cfg.DCs)}
	for i := range o.shelves {
		o.shelves[i] = m.shelve(i + 1)
	}
	return o
}

func (m *Model) shelve(dc int) []shelf {
	shelves := make([]shelf, len(nodeRegions)*len(vmTypes))
	for n := 1; n <= m.cfg.NodesPerDC; n++ {
		s := m.source(NodeRef(dc, n))
		traits := pick(cpuCounts, s.draw(fieldCPU, 0)) |
			pick(ramSizes, s.draw(fieldRAM, 0))<<4 |
			pick(availHours, s.draw(fieldHours, 0))<<8 |
			int(s.price())<<16
		at := shelfIndex(pick(nodeRegions, s.draw(fieldRegion, 0)), pick(vmTypes, s.draw(fieldVMType, 0)))
		shelves[at] = append(shelves[at], shelved{uint32(n), uint32(traits)})
	}
	for i, s := range shelves {
		shelves[i] = slices.Clone(s) // without the room to grow
		slices.SortStableFunc(shelves[i], func(a, b shelved) int { return cmp.Compare(a.price(), b.price()) })
	}
	return shelves
}

func shelfIndex(region, vmType int) int { return region*len(vmTypes) + vmType }

// Expected returns the answer to a question. The block may be any, also one that
// no store has reached. The time is constant for a NodeState, grows with the
// nodes that must be passed over for a NodeMatch, and with the data centre for
// the others.
func (o *Oracle) Expected(q Query) Answer {
	if q.Kind == NodeState {
		e, ok := o.model.EntityAt(NodeRef(q.DC, q.N), q.Block)
		if !ok {
			return Answer{}
		}
		if !q.Content {
			e.Content = nil
		}
		return Answer{Entity: e}
	}
	var a Answer
	for _, r := range o.ordered(q, o.matches(q)) {
		a.Keys = append(a.Keys, r.Key())
	}
	return a
}

// match is an entity that a question is about.
type match struct {
	n     int
	turn  uint64
	price uint32 // of nodes that are sorted by it, else 0
}

// matches returns what a question other than NodeState matches. Those of a
// NodeMatch are only as many as the limit needs.
func (o *Oracle) matches(q Query) []match {
	switch q.Kind {
	case NodesInDC:
		return o.scan(q, ClassNode, 1, 1)
	case AvailableGPUNodes:
		return o.available(q, VMTypeGPU)
	case WorkloadsOnNode:
		return o.scan(q, ClassWorkload, q.N, o.model.cfg.NodesPerDC)
	case NodeMatch:
		return o.suitable(q)
	}
	return nil
}

// scan looks at every step-th entity of the data centre from the first on.
func (o *Oracle) scan(q Query, class Class, first, step int) []match {
	var found []match
	last := int(o.model.population(class).perDC)
	for n := first; n <= last; n += step {
		if v, ok := o.model.versionAt(Ref{class, q.DC, n}, q.Block); ok {
			found = append(found, match{n: n, turn: v.turn})
		}
	}
	return found
}

// isAvailable returns the version of a node that is visible at a block if it is available.
func (o *Oracle) isAvailable(r Ref, block uint64) (version, bool) {
	v, ok := o.model.versionAt(r, block)
	return v, ok && o.model.status(r, v.turn) == StatusAvailable
}

func (o *Oracle) available(q Query, vmType string) []match {
	var found []match
	for i, s := range o.shelves[q.DC-1] {
		if vmTypes[i%len(vmTypes)].value != vmType {
			continue
		}
		for _, node := range s {
			if v, ok := o.isAvailable(NodeRef(q.DC, int(node.n)), q.Block); ok {
				found = append(found, match{n: int(node.n), turn: v.turn})
			}
		}
	}
	return found
}

func (o *Oracle) suitable(q Query) []match {
	w := o.model.Workload(q.DC, q.N)
	var found []match
	for i, s := range o.shelves[q.DC-1] {
		region, vmType := nodeRegions[i/len(vmTypes)].value, vmTypes[i%len(vmTypes)].value
		if vmType == w.VMType && (w.Region == RegionAny || w.Region == region) {
			found = append(found, o.cheapest(q, &w, s)...)
		}
	}
	return found
}

// cheapest returns the suitable nodes of a shelf up to the limit, and those of
// the same price as the last: creation, which the shelf knows nothing of,
// decides among them.
func (o *Oracle) cheapest(q Query, w *Workload, s shelf) []match {
	var found []match
	for _, node := range s {
		if q.Limit > 0 && len(found) >= q.Limit && node.price() > found[len(found)-1].price {
			break
		}
		if !node.suits(w) {
			continue
		}
		if v, ok := o.isAvailable(NodeRef(q.DC, int(node.n)), q.Block); ok {
			found = append(found, match{n: int(node.n), turn: v.turn, price: node.price()})
		}
	}
	return found
}

// ordered sorts matches as the question asks for and cuts them at its limit.
func (o *Oracle) ordered(q Query, matches []match) []Ref {
	class := ClassNode
	if q.Kind == WorkloadsOnNode {
		class = ClassWorkload
	}
	type ranked struct {
		n        int
		price    uint32
		sequence uint64
	}
	rank := make([]ranked, len(matches))
	for i, f := range matches {
		rank[i] = ranked{f.n, f.price, o.model.born(Ref{class, q.DC, f.n}, f.turn).sequence()}
	}
	slices.SortFunc(rank, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(b.sequence, a.sequence))
	})
	if q.Limit > 0 && q.Limit < len(rank) {
		rank = rank[:q.Limit]
	}
	refs := make([]Ref, len(rank))
	for i, f := range rank {
		refs[i] = Ref{class, q.DC, f.n}
	}
	return refs
}
