package event

import "slices"

// index finds the queries that select an event without comparing it with all of
// them: each item is filed under its first tag, or under its types.
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

// find returns the queries that select an event, in order, until the next call.
func (x *index) find(ev *Event) []int {
	x.found = append(x.found[:0], x.all...)
	for _, e := range x.byType[ev.Type] {
		x.found = append(x.found, e.query)
	}
	for _, t := range ev.Tags {
		for _, e := range x.byTag[t] {
			if e.item.matches(ev) {
				x.found = append(x.found, e.query)
			}
		}
	}
	slices.Sort(x.found)
	x.found = slices.Compact(x.found)
	return x.found
}
