package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

var runEventSubscribe = parts[Harness]{
	{"replay and follow", subscribeFollow},
	{"other process is heard", subscribeHears},
	{"close", subscribeClose},
}.run

func subscribeClose(t *testing.T, h Harness) {
	s := h.events(t)
	done := make(chan error)
	go func() {
		_, err := model.Collect(s.Subscribe(context.Background(), event.All(), 0))
		done <- err
	}()
	closeDB(t, s.db)
	require.ErrorIs(t, <-done, store.ErrClosed)
}

// subscribeFollow appends from inside the loop, in the process that appends and
// in another one, so that the subscription waits for each event but the first.
func subscribeFollow(t *testing.T, h Harness) {
	s := h.events(t)
	for _, reader := range []eventStream{s, s.another(t, h)} {
		from := call(t, s.Head) + 1
		s.add(t, ev("A", "0"), ev("B", "-"), ev("A", "1"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var last error
		for e, err := range reader.Subscribe(ctx, event.Of("A"), from) {
			if last = err; err != nil {
				break
			}
			require.Equal(t, fmt.Sprint(n), string(e.Data))
			switch n++; {
			case n == 20:
				cancel()
			case n >= 2:
				s.add(t, ev("B", "-"), ev("A", fmt.Sprint(n)))
			}
		}
		require.ErrorIs(t, last, context.Canceled)
		require.Equal(t, 20, n)
	}
}

// subscribeHears: a subscription that polls once an hour is woken by an append
// of another process.
func subscribeHears(t *testing.T, h Harness) {
	s := h.events(t)
	if _, ok := s.db.Engine().(driver.Listener); !ok {
		t.Skip("other processes are not heard")
	}
	hourly := store.EventOptions{PollInterval: time.Hour}
	other := h.openEvents(t, s.url, hourly)
	readOnly := h.open(t, s.url, &store.Options{ReadOnly: true})
	reader := call1(t, readOnly.Events, &hourly)
	s.add(t, ev("A", "0"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	have := 1
	for _, evs := range []*store.Events{other.own, reader} {
		end := uint64(have + 5)
		for e, err := range evs.Subscribe(ctx, event.All(), 0) {
			require.NoError(t, err)
			if e.Position == end {
				break
			}
			if e.Position == uint64(have) {
				s.add(t, ev("A", fmt.Sprint(have)))
				have++
			}
		}
	}
}
