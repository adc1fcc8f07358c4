package eventlog

import (
	"context"
	"slices"
)

// finder goes through the positions of the events of a page in order. It merges
// the streams of all items, which are a heap by their positions, and then the
// events that have no postings yet, which are newer.
type finder struct {
	search
	page *Page
	heap []*stream

	unposted   []uint64 // events without postings that were not taken
	unpostedOK bool     // unposted was read
}

// candidate is the position of an event that matches an item, or that must be
// compared with the items of some streams.
type candidate struct {
	at      uint64
	sure    bool
	streams []*stream
}

// newFinder begins a search for the events of a page.
func newFinder(s search, p *Page, from uint64) *finder {
	f := &finder{search: s, page: p}
	f.withEnd = !s.log.traits.Compiled // which saves a statement
	for i := range p.Items {
		st := f.stream(&p.Items[i])
		if !st.any {
			f.heap = append(f.heap, st)
			f.shared = append(f.shared, st.lists...)
			continue
		}
		for _, l := range st.lists {
			f.heap = append(f.heap, &stream{lists: []*list{l}, item: st.item})
			f.shared = append(f.shared, l)
		}
	}
	for _, st := range f.heap {
		st.at = from
		st.move(from)
	}
	return f
}

// take returns the next candidates, up to a number of them.
func (f *finder) take(ctx context.Context, n int) (list []candidate, err error) {
	if f.backwards {
		if list, err = f.takeUnposted(ctx, list, n); err != nil || len(list) == n {
			return list, err
		}
	}
	for len(f.heap) > 0 && len(list) < n {
		top := f.heap[0]
		if f.passed(top.at) {
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
		if k := len(list); k == 0 || list[k-1].at != top.at {
			list = append(list, candidate{at: top.at})
		}
		list[len(list)-1].add(top)
		f.advance(top)
	}
	// Streams that are at the last position, too, pass it.
	for len(list) > 0 && len(f.heap) > 0 && !f.before(list[len(list)-1].at, f.heap[0].at) {
		list[len(list)-1].add(f.heap[0])
		f.advance(f.heap[0])
	}
	if !f.backwards && len(list) < n {
		return f.takeUnposted(ctx, list, n)
	}
	return list, nil
}

// add notes that a stream has the position of a candidate.
func (c *candidate) add(st *stream) {
	if st.sure && !st.compare {
		c.sure = true
	} else {
		c.streams = append(c.streams, st)
	}
}

// takeUnposted adds events without postings to candidates, up to a number of them.
func (f *finder) takeUnposted(ctx context.Context, list []candidate, n int) ([]candidate, error) {
	if !f.unpostedOK {
		if f.withEnd && !f.endKnown {
			if err := f.fill(ctx, f.shared); err != nil {
				return nil, err
			}
		}
		end, err := f.ends(ctx)
		if err != nil {
			return nil, err
		}
		found, err := f.page.tail(f.log).match(ctx, f.q, end, f.page, f.page.Limit)
		if err != nil {
			return nil, err
		}
		f.unposted, f.unpostedOK = slices.Concat(found...), true
		slices.Sort(f.unposted)
		f.unposted = slices.Compact(f.unposted)
		if f.backwards {
			slices.Reverse(f.unposted)
		}
	}
	for len(f.unposted) > 0 && len(list) < n {
		list = append(list, candidate{at: f.unposted[0], sure: true})
		f.unposted = f.unposted[1:]
	}
	return list, nil
}

// advance passes the position of the stream on top, and drops the stream if no
// position is left. Backwards it may come to 0, which is after every wanted one.
func (f *finder) advance(top *stream) {
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

// down moves a stream down the heap, below the streams that are before it.
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
