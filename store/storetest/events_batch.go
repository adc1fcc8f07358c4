package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runEventBatch: while the postings of a batch are written by several commits,
// this process and another one find every event by tag, type and ID, also when
// the store is closed in the middle and goes on after it is opened again.
func runEventBatch(t *testing.T, h Harness) {
	const every, events = 40, 150
	url := h.quickURL(t)
	s := h.openEvents(t, url, store.EventOptions{IndexEvery: every})
	other := s.another(t, h)
	list := make([]event.Event, events)
	for n := range list {
		list[n] = ev([]string{"Even", "Odd"}[n%2], fmt.Sprint(n), fmt.Sprint("n:", n), fmt.Sprint("third:", n%3))
		list[n].ID = idOf(n * 7919 % 1000) // in another order than the positions
		if n%9 == 8 {
			closeDB(t, s.db)
			if other.own == s.own {
				s = h.openEvents(t, url, store.EventOptions{IndexEvery: every})
				other = s
			} else {
				s = h.openEvents(t, url, store.EventOptions{IndexEvery: every})
			}
		}
		unique := event.Unless(event.Tagged(list[n].Tags[0]))
		require.Equal(t, []uint64{uint64(n) + 1}, must(s.own.Append(soon(t), list[n:n+1], unique))(t))

		for _, by := range []eventStream{s, other} {
			for _, i := range []int{n, n / 2, n / 3} {
				require.Equal(t, fmt.Sprint(i), by.names(t, event.Tagged(list[i].Tags[0]), nil))
				require.Equal(t, []uint64{uint64(i) + 1}, must(by.own.Append(soon(t), list[i:i+1], nil))(t), "by its ID")
				again := event.Event{Type: "Again"}
				refuses(t, store.ErrConflict)(by.own.Append(soon(t), []event.Event{again}, event.Unless(event.Tagged(list[i].Tags[0]))))
			}
			require.Len(t, by.read(t, event.Of("Odd"), nil), (n+1)/2)
			require.Len(t, by.read(t, event.Tagged(list[0].Tags[1]), &event.ReadOptions{Backwards: true}), n/3+1)
		}
		if n%10 == 0 {
			report := call1(t, s.db.Check, nil)
			require.NoError(t, report.Err())
		}
	}
}
