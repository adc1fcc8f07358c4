package eventlog

import (
	"context"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// finder goes through the positions of the events of a page in order: those of all streams
// together, a heap of them by the position that each is at, and those that have no postings,
// which lie behind.
type finder struct {
	search
	page *Page
	heap []*stream
	to   uint64 // the last position that is wanted

	unposted []uint64 // left of those without postings
	looked   bool     // for them
}

// candidate is the position of an event that matches an item, or of one that is to be
// compared with the items of some streams.
type candidate struct {
	at      uint64
	sure    bool
	streams []*stream
}

// newFinder begins a search for the events of a page.
func newFinder(s search, p *Page, from, to uint64) *finder {
	f := &finder{search: s, page: p, to: to}
	f.tell = s.log.dialect != driver.SQLite // where a statement is dear
	for i := range p.Items {
		st := f.stream(&p.Items[i])
		if !st.any {
			f.heap = append(f.heap, st)
			f.lists = append(f.lists, st.lists...)
			continue
		}
		for _, l := range st.lists {
			f.heap = append(f.heap, &stream{lists: []*list{l}, item: st.item})
			f.lists = append(f.lists, l)
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
		if k := len(list); k == 0 || list[k-1].at != top.at {
			list = append(list, candidate{at: top.at})
		}
		list[len(list)-1].add(top)
		f.advance(top)
	}
	// What is at the last one, too, is passed, and what has ended leaves.
	for len(list) > 0 && len(f.heap) > 0 && !f.before(list[len(list)-1].at, f.heap[0].at) {
		list[len(list)-1].add(f.heap[0])
		f.advance(f.heap[0])
	}
	if !f.backwards && len(list) < n {
		return f.takeUnposted(ctx, list, n)
	}
	return list, nil
}

// add tells that a stream is at a candidate, and may have it.
func (c *candidate) add(st *stream) {
	if st.sure && !st.check {
		c.sure = true
	} else {
		c.streams = append(c.streams, st)
	}
}

// takeUnposted adds events without postings to candidates, up to a number of them.
func (f *finder) takeUnposted(ctx context.Context, list []candidate, n int) ([]candidate, error) {
	if !f.looked {
		if f.tell && !f.told {
			if err := f.fill(ctx, f.lists); err != nil {
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
		f.unposted, f.looked = slices.Concat(found...), true
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

// advance passes the position of the stream on top, and drops it if nothing is left. Backwards
// it may come to 0, which is behind every position that is wanted.
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
