package event

import "slices"

// index finds the queries that select an event without comparing it with all of them: an
// item is under its first tag, or under its types.
type index struct {
	all    []int // queries for every event
	byTag  map[Tag][]entry
	byType map[string][]entry
	found  []int
}

// entry is an item of a query.
type entry struct {
	query int
	item  *Item
}

func (x *index) add(n int, q Query) {
	if x.byTag == nil {
		x.byTag, x.byType = map[Tag][]entry{}, map[string][]entry{}
	}
	if len(q.Items) == 0 {
		x.all = append(x.all, n)
	}
	for i := range q.Items {
		e := entry{query: n, item: &q.Items[i]}
		if len(e.item.Tags) > 0 {
			x.byTag[e.item.Tags[0]] = append(x.byTag[e.item.Tags[0]], e)
			continue
		}
		for _, typ := range e.item.Types {
			x.byType[typ] = append(x.byType[typ], e)
		}
	}
}

// each calls f with each query that selects an event, perhaps more than once, until f
// returns false.
func (x *index) each(ev *Event, f func(query int) bool) {
	for _, n := range x.all {
		if !f(n) {
			return
		}
	}
	for _, e := range x.byType[ev.Type] {
		if !f(e.query) {
			return
		}
	}
	for _, t := range ev.Tags {
		for _, e := range x.byTag[t] {
			if e.item.matches(ev) && !f(e.query) {
				return
			}
		}
	}
}

// find returns the queries that select an event, in order, until the next call.
func (x *index) find(ev *Event) []int {
	x.found = x.found[:0]
	x.each(ev, func(query int) bool {
		x.found = append(x.found, query)
		return true
	})
	slices.Sort(x.found)
	x.found = slices.Compact(x.found)
	return x.found
}
