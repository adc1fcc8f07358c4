package dcseed

import (
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Listing is the answer to a query for the nodes of a data centre, or for its
// available GPU nodes. It holds some matches after those of the answer. So
// the listing of a later block follows from what was revised meanwhile. To look
// at all nodes again for each block would take as much of the processor as the
// store that is checked: at 10,000 rows a second one of two cores.
type Listing struct {
	oracle *Oracle
	query  Query

	matches []match // in order
	all     bool    // there are no other matches
	last    match   // the others come after it
	keys    []entity.Key
}

// spare is how many matches a listing holds at first, in limits of its query.
const spare = 4

// List returns the listing of a query.
func (o *Oracle) List(q Query) *Listing {
	if q.Kind != NodesInDC && q.Kind != AvailableGPUNodes {
		panic("dcseed: no listing of " + q.Kind.String())
	}
	l := &Listing{oracle: o, query: q, matches: o.find(q, spare*q.Limit), all: true}
	if q.Limit > 0 && len(l.matches) == spare*q.Limit {
		l.cut()
	}
	return l.answered()
}

// cut keeps as many matches as a listing holds at first. Others may come after
// them.
func (l *Listing) cut() {
	n := spare * l.query.Limit
	l.matches, l.all, l.last = l.matches[:n], false, l.matches[n-1]
}

// answered computes the answer from the matches, once for all checks.
func (l *Listing) answered() *Listing {
	n := len(l.matches)
	if l.query.Limit > 0 {
		n = min(n, l.query.Limit)
	}
	l.keys = keysOf(l.matches[:n])
	return l
}

// Block returns the block of a listing.
func (l *Listing) Block() uint64 { return l.query.Block }

// Keys returns the answer, which belongs to the listing.
func (l *Listing) Keys() []entity.Key { return l.keys }

// At returns the listing of a later block.
func (l *Listing) At(block uint64) *Listing {
	o, m := l.oracle, l.oracle.model
	next := &Listing{oracle: o, query: l.query.At(block), all: l.all, last: l.last}
	created := l.query.Block+1 < m.firstLoad // nodes, in the blocks between
	if created || (block-l.query.Block)*m.nodes.updates > m.nodes.count {
		return o.List(next.query)
	}

	// Find the nodes of the data centre that were revised.
	revised := map[Ref]bool{}
	for b := l.query.Block + 1; b <= block; b++ {
		for r := range m.revisions(b) {
			if r.Class == ClassNode && r.DC == l.query.DC {
				revised[r] = true
			}
		}
	}

	// Keep the matches that were not, as long as they have not expired.
	for _, old := range l.matches {
		if _, visible := m.versionAt(old.Ref, block); visible && !revised[old.Ref] {
			next.matches = append(next.matches, old)
		}
	}

	// Add those of the revised ones that match, unless they come after the last one.
	for r := range revised {
		v, visible := m.versionAt(r, block)
		if !visible || l.query.Kind == AvailableGPUNodes && !(m.isGPU(r) && m.status(r, v.revision) == StatusAvailable) {
			continue
		}
		found := match{Ref: r, sequence: m.born(r, v.revision).sequence()}
		if next.all || compareMatches(found, next.last) <= 0 {
			next.matches = append(next.matches, found)
		}
	}

	// Look at all nodes when too few are left.
	if !next.all && len(next.matches) < l.query.Limit {
		return o.List(next.query)
	}
	slices.SortFunc(next.matches, compareMatches)
	if l.query.Limit > 0 && len(next.matches) >= 2*spare*l.query.Limit {
		next.cut()
	}
	return next.answered()
}

// isGPU reports whether a node is of vm_type "gpu".
func (m *Model) isGPU(r Ref) bool {
	return draw(vmTypes, m.source(r).draw(fieldVMType, 0)) == VMTypeGPU
}
