package mix

import (
	"cmp"
	"slices"
	"sort"
)

// topic is what a question is about.
type topic uint8

const (
	byKey      topic = iota // one entity
	byStatus                // with a status
	byType                  // of a type
	byProposal              // for a proposal
	byChunk                 // with a successor
	byCreator               // of a creator, and of a type unless that is 0
	byGPU                   // with more GPUs than a number
	byWindow                // last modified in [from, to)
)

// question is what an Op asks, in the oracle's own terms.
type question struct {
	topic    topic
	number   uint32 // of the value, in the index
	typ      uint32 // byCreator
	gpus     uint32 // byGPU
	from, to uint64 // byWindow
}

// matches tells whether a visible version is an answer. That the creator is the
// right one the list has told.
func (q *question) matches(v *version) bool {
	switch q.topic {
	case byStatus:
		return v.status == q.number
	case byType:
		return v.typ == q.number
	case byProposal:
		return v.proposal == q.number
	case byChunk:
		return v.chunk == q.number
	case byCreator:
		return q.typ == 0 || v.typ == q.typ
	case byGPU:
		return v.gpu > q.gpus+1
	case byWindow:
		return q.from <= uint64(v.from) && uint64(v.from) < q.to
	}
	return false
}

// list returns the lives among which the answers are, oldest first.
func (o *Oracle) list(q *question) []int32 {
	switch q.topic {
	case byStatus:
		return o.statuses.lists[q.number]
	case byType:
		return o.types.lists[q.number]
	case byProposal:
		return o.proposals.lists[q.number]
	case byChunk:
		return o.chunks.lists[q.number]
	case byCreator:
		return o.creators.lists[q.number]
	case byGPU:
		return o.gpus
	}
	return nil
}

// answer appends the lives that answer a question at a block, newest first, up
// to a limit; 0 is no limit.
func (o *Oracle) answer(q *question, block uint64, limit int, found []int32) []int32 {
	if q.topic == byWindow {
		return o.window(q, block, limit, found)
	}
	list := o.list(q)
	for i := len(list) - 1; i >= 0 && (limit == 0 || len(found) < limit); i-- {
		if v := o.at(list[i], block); v != none && q.matches(&o.versions[v]) {
			found = append(found, list[i])
		}
	}
	return found
}

// window answers for a window of blocks: those that were created in it come
// first, then those older ones that were changed in it.
func (o *Oracle) window(q *question, block uint64, limit int, found []int32) []int32 {
	first := 0
	if q.from > 0 {
		first = o.born(q.from - 1)
	}
	for l := o.born(q.to-1) - 1; l >= first && (limit == 0 || len(found) < limit); l-- {
		if v := o.at(int32(l), block); v != none && q.matches(&o.versions[v]) {
			found = append(found, int32(l))
		}
	}
	if limit > 0 && len(found) >= limit {
		return found
	}
	begin := len(found)
	for v, end := o.begun(q.from), o.begun(q.to); v < end; v++ {
		if l := o.versions[v].life; int(l) < first && o.at(l, block) == int32(v) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found[begin:], func(a, b int32) int { return cmp.Compare(b, a) })
	if limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	return found
}

// begun returns how many versions began before a block.
func (o *Oracle) begun(block uint64) int {
	return sort.Search(len(o.versions), func(i int) bool { return uint64(o.versions[i].from) >= block })
}
