package dcseed

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Answer is a store's answer to a Query.
type Answer struct {
	Keys   []entity.Key   // of all but NodeState, in order
	Entity *entity.Entity // of NodeState; nil when the node is not visible
}

// Oracle knows the answers. It holds 8 bytes for each node of all data centres
// and nothing for workloads. Building it takes a fraction of a microsecond a
// node. It never changes, and is safe for concurrent use.
type Oracle struct {
	model *Model
	// shelves has the nodes by data centre, region and vm_type, cheapest first.
	shelves [][]shelf
}

// shelf has the nodes of one region and vm_type.
type shelf []shelved

// shelved is a node in 8 bytes: its number and the attributes that a query
// compares.
type shelved struct {
	n      uint32
	traits uint32 // price<<16 | indexes of hours<<8, ram<<4 and cpu
}

func (s shelved) price() uint32 { return s.traits >> 16 }

// wanted has the conditions of a query for available nodes.
type wanted struct {
	vmType, region  string
	cpu, ram, hours uint64 // at least
}

// NewOracle reads every node of the model once.
func NewOracle(m *Model) *Oracle {
	o := &Oracle{model: m, shelves: make([][]shelf, m.cfg.DCs)}
	for dc := range o.shelves {
		shelves := make([]shelf, len(nodeRegions)*len(vmTypes))
		for n := 1; n <= m.cfg.NodesPerDC; n++ {
			s := m.source(NodeRef(dc+1, n))
			traits := pick(cpuCounts, s.draw(fieldCPU, 0)) |
				pick(ramSizes, s.draw(fieldRAM, 0))<<4 |
				pick(availHours, s.draw(fieldHours, 0))<<8 |
				int(s.price())<<16
			at := pick(nodeRegions, s.draw(fieldRegion, 0))*len(vmTypes) + pick(vmTypes, s.draw(fieldVMType, 0))
			shelves[at] = append(shelves[at], shelved{uint32(n), uint32(traits)})
		}
		for i, s := range shelves {
			shelves[i] = slices.Clone(s) // without the room to grow
			slices.SortStableFunc(shelves[i], func(a, b shelved) int { return cmp.Compare(a.price(), b.price()) })
		}
		o.shelves[dc] = shelves
	}
	return o
}

// Expected returns the answer to a query at any block, even one that no store
// has reached. The time is constant for a NodeState, grows with the number of
// skipped nodes for a NodeMatch, and with the data centre for the others.
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
	return Answer{Keys: keysOf(o.find(q, q.Limit))}
}

// find returns the first matches of a query, in order; without a limit all.
func (o *Oracle) find(q Query, limit int) []match {
	found := first{limit: limit}
	switch q.Kind {
	case NodesInDC:
		o.scan(&found, q, ClassNode, 1, 1)
	case AvailableGPUNodes:
		o.available(&found, q, &wanted{vmType: VMTypeGPU, region: RegionAny})
	case WorkloadsOnNode:
		o.scan(&found, q, ClassWorkload, q.N, o.model.cfg.NodesPerDC)
	case NodeMatch:
		var w entity.Op
		o.model.describe(&w, WorkloadRef(q.DC, q.N), 0)
		o.available(&found, q, &wanted{
			vmType: w.StringAttributes["vm_type"], region: w.StringAttributes["region"],
			cpu: w.NumericAttributes["req_cpu"], ram: w.NumericAttributes["req_ram"], hours: w.NumericAttributes["max_hours"],
		})
	}
	return found.sorted()
}

// keysOf returns the keys of matches.
func keysOf(matches []match) (keys []entity.Key) {
	for _, m := range matches {
		keys = append(keys, m.Key())
	}
	return keys
}

// match is an entity that matches a query.
type match struct {
	Ref
	sequence uint64
	price    uint32 // of nodes that are sorted by it, else 0
}

// compareMatches puts the cheapest first, and of one price the newest.
func compareMatches(a, b match) int {
	return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(b.sequence, a.sequence))
}

// first keeps the first ones of all matches; with no limit it keeps all. A check
// must not take more of the processor than the store that it checks, so the
// matches of a whole data centre are neither kept nor sorted.
type first struct {
	limit int
	list  []match
	full  bool
	last  match // of the first ones, once there are enough
}

func (f *first) add(m match) {
	if f.full && compareMatches(m, f.last) > 0 {
		return
	}
	f.list = append(f.list, m)
	if f.limit > 0 && len(f.list) == 2*f.limit {
		f.full, f.last = true, f.sorted()[f.limit-1]
	}
}

// sorted returns the first matches in order.
func (f *first) sorted() []match {
	slices.SortFunc(f.list, compareMatches)
	if f.limit > 0 && f.limit < len(f.list) {
		f.list = f.list[:f.limit]
	}
	return f.list
}

// scan finds the matches among every step-th entity of the data centre, from
// one on. It begins with the last ones, because most of these are the newest:
// then the others are rejected without sorting.
func (o *Oracle) scan(found *first, q Query, class Class, from, step int) {
	last := int(o.model.population(class).perDC)
	for n := last - (last-from)%step; n >= from; n -= step {
		r := Ref{class, q.DC, n}
		if v, ok := o.model.versionAt(r, q.Block); ok {
			found.add(match{Ref: r, sequence: o.model.born(r, v.revision).sequence()})
		}
	}
}

// available finds the available nodes that meet the conditions. Nodes of a
// shelf that are sorted by price are cut at the limit. But all nodes with the
// price of the last one are kept, because their order depends on their
// creation, which the shelf does not know.
func (o *Oracle) available(found *first, q Query, w *wanted) {
	for i, s := range o.shelves[q.DC-1] {
		region, vmType := nodeRegions[i/len(vmTypes)].value, vmTypes[i%len(vmTypes)].value
		if vmType != w.vmType || w.region != RegionAny && w.region != region {
			continue
		}
		count, dearest := 0, uint32(0) // of the matches on this shelf
		for _, node := range s {
			price := node.price()
			if q.OrderBy == "" {
				price = 0
			}
			if q.Limit > 0 && count >= q.Limit && price > dearest {
				break
			}
			if cpuCounts[node.traits&15].value < w.cpu || ramSizes[node.traits>>4&15].value < w.ram || availHours[node.traits>>8&15].value < w.hours {
				continue
			}
			r := NodeRef(q.DC, int(node.n))
			if v, ok := o.model.versionAt(r, q.Block); ok && o.model.status(r, v.revision) == StatusAvailable {
				found.add(match{r, o.model.born(r, v.revision).sequence(), price})
				count, dearest = count+1, price
			}
		}
	}
}
