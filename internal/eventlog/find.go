package eventlog

import "context"

// finder goes through the positions of all streams together, in order: a heap of them
// by the position that each is at.
type finder struct {
	search
	heap []*stream
	to   uint64 // the last position that is wanted
}

// candidate is the position of an event that matches an item, or of one that is to be
// looked at.
type candidate struct {
	at     uint64
	sure   bool
	stream *stream // that is not sure
}

// newFinder begins a search for items from a position on.
func newFinder(s search, items []Item, from, to uint64) *finder {
	f := &finder{search: s, to: to}
	for i := range items {
		st := f.stream(&items[i])
		if !st.any {
			f.heap = append(f.heap, st)
			f.lists = append(f.lists, st.lists...)
			continue
		}
		for _, l := range st.lists {
			f.heap = append(f.heap, &stream{lists: []*list{l}})
			f.lists = append(f.lists, l)
		}
	}
	for _, st := range f.heap {
		st.at = from
		st.move(from)
	}
	return f
}

// begin reads the first rows of all lists.
func (f *finder) begin(ctx context.Context) error { return f.fill(ctx, f.lists) }

// take returns the next candidates, up to a number of them.
func (f *finder) take(ctx context.Context, n int) (list []candidate, err error) {
	for len(f.heap) > 0 && len(list) < n {
		top := f.heap[0]
		if f.before(f.to, top.at) {
			f.heap = nil
			break
		}
		if !top.sure {
			at, ok, err := f.candidate(ctx, top, top.at)
			if err != nil {
				return nil, err
			}
			if ok {
				top.at, top.sure = at, true
			} else {
				f.drop()
			}
			f.down(0)
			continue
		}
		if k := len(list); k > 0 && list[k-1].at == top.at {
			list[k-1].sure = list[k-1].sure || top.check == nil
		} else {
			list = append(list, candidate{at: top.at, sure: top.check == nil, stream: top})
		}
		f.advance(top)
	}
	// What is at the last one, too, is passed, and what has ended leaves.
	for len(list) > 0 && len(f.heap) > 0 && !f.before(list[len(list)-1].at, f.heap[0].at) {
		top := f.heap[0]
		if top.sure {
			list[len(list)-1].sure = list[len(list)-1].sure || top.check == nil
		}
		f.advance(top)
	}
	return list, nil
}

// advance passes the position of the stream on top, and drops it if nothing is left.
func (f *finder) advance(top *stream) {
	if f.backwards && top.at <= 1 {
		f.drop()
		f.down(0)
		return
	}
	top.at, top.sure = f.behind(top.at), false
	if len(top.lists) == 1 {
		l := top.lists[0]
		l.at = top.at
		f.pass(l)
		switch {
		case len(l.positions) > 0:
			top.at, top.sure = l.positions[0], true
		case l.end:
			f.drop()
		}
	}
	f.down(0)
}

// drop removes the stream on top.
func (f *finder) drop() {
	last := len(f.heap) - 1
	f.heap[0] = f.heap[last]
	f.heap = f.heap[:last]
}

// down puts a stream below those that are before it.
func (f *finder) down(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(f.heap); child++ {
			if f.before(f.heap[child].at, f.heap[first].at) {
				first = child
			}
		}
		if first == i {
			return
		}
		f.heap[i], f.heap[first] = f.heap[first], f.heap[i]
		i = first
	}
}
