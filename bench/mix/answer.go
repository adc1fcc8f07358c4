package mix

import (
	"cmp"
	"slices"
	"sort"
)

// topic is what a question is about.
type topic uint8

const (
	byStatus   topic = iota // with a status
	byType                  // of a type
	byProposal              // for a proposal
	byChunk                 // with a successor
	byKey                   // one entity
	byCreator               // of a creator, and of a type unless that is 0
	byGPU                   // with more GPUs than a number
	byWindow                // last modified in [from, to)
)

// asked are the attributes of the topics that are about one.
var asked = [...]string{byStatus: "status", byType: "type", byProposal: "proposalKey", byChunk: "nextBlockId"}

// question is what an Op asks, in the oracle's own terms.
type question struct {
	topic    topic
	number   uint32 // of the value, in the index; of GPUs
	typ      uint32 // byCreator
	from, to uint64 // byWindow
}

// matches tells whether a visible version is an answer. That the creator is the
// right one the list has told.
func (q *question) matches(v *version) bool {
	switch q.topic {
	case byCreator:
		return q.typ == 0 || v.values[byType] == q.typ
	case byGPU:
		return v.gpu > q.number+1
	case byWindow:
		return q.from <= uint64(v.from) && uint64(v.from) < q.to
	}
	return v.values[q.topic] == q.number
}

// list returns the lives among which the answers are, oldest first.
func (o *Oracle) list(q *question) []int32 {
	switch q.topic {
	case byCreator:
		return o.creators.lists[q.number]
	case byGPU:
		return o.gpus
	}
	return o.texts[q.topic].lists[q.number]
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
