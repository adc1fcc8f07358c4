package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

var runEventImport = parts[Harness]{
	{"continuation", importContinuation},
	{"times", importTimes},
	{"alone", importAlone},
	{"renumber", importRenumber},
}.run

// oldEvents are events of 2020, one a minute, some with IDs.
func oldEvents(n int) []event.Sequenced {
	list := make([]event.Sequenced, n)
	for i := range list {
		list[i] = event.Sequenced{Position: uint64(i + 1), Time: time.Date(2020, 1, 1, 0, i, 0, 1000*i, time.UTC), Event: ev("Old", "data", "n:"+string(rune('a'+i%26)))}
		if i%3 == 0 {
			list[i].ID = idOf(i)
		}
	}
	return list
}

// importContinuation: events that do not continue the store's events are
// refused.
func importContinuation(t *testing.T, h Harness) {
	s := h.events(t)
	list := oldEvents(10)
	run := func(list []event.Sequenced) error {
		_, err := s.own.Import(t.Context(), stream(list, nil), nil)
		return err
	}
	require.ErrorIs(t, run(list[2:4]), store.ErrHistory, "a gap at the beginning")
	require.NoError(t, run(list[:4]))
	require.ErrorIs(t, run(slices.Concat(list[4:6], list[7:])), store.ErrHistory, "a gap")
	require.ErrorIs(t, run(slices.Concat(list[4:6], list[5:])), store.ErrHistory, "an event again")
	head := call(t, s.Head)
	require.EqualValues(t, 4, head, "nothing of a batch with a gap")
	other := slices.Clone(list)
	other[3].Data = []byte("other")
	require.ErrorContains(t, run(other), "the store has another event 4")
	require.ErrorIs(t, run(other[:4]), store.ErrHistory, "nothing but what is there")
	other[3] = list[3]
	other[3].Time = list[2].Time
	require.ErrorIs(t, run(other), store.ErrHistory, "of another time")
	other = slices.Clone(list[4:6])
	other[1].ID = idOf(0)
	require.ErrorIs(t, run(other), event.ErrDuplicate)
	require.ErrorIs(t, run(other[1:]), store.ErrHistory)
	other[1].Position = 5
	require.ErrorIs(t, run(other[1:]), event.ErrDuplicate, "the ID of another event")
	broken := errors.New("broken")
	done, err := s.own.Import(t.Context(), stream(list[2:8], broken), &store.EventImportOptions{Batch: 3})
	require.ErrorIs(t, err, broken)
	require.Equal(t, store.EventsImported{Events: 4, Skipped: 2, Head: 8}, done, "what came before it broke is kept")
	require.NoError(t, run(list[2:]))
	require.Equal(t, list, s.all(t))
}

// importTimes: times do not decrease, whether the caller or the store gives
// them.
func importTimes(t *testing.T, h Harness) {
	s := h.events(t)
	run := func(times ...time.Time) error {
		var list []event.Sequenced
		for _, at := range times {
			list = append(list, event.Sequenced{Time: at, Event: ev("A", "")})
		}
		_, err := s.own.Import(t.Context(), stream(list, nil), nil)
		return err
	}
	past := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, run(past, past, past.Add(time.Microsecond)))
	require.ErrorIs(t, run(past), store.ErrInvalid)
	require.ErrorIs(t, run(past.AddDate(1, 0, 0), past), store.ErrInvalid)
	require.ErrorContains(t, run(time.Unix(0, 0)), "not after 1970")
	require.ErrorIs(t, run(time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)), store.ErrInvalid)
	for _, ahead := range []time.Time{time.Now().Add(2 * time.Hour), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(400_000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		require.ErrorIs(t, run(ahead), store.ErrInvalid, "all later events would have this time")
		require.ErrorContains(t, run(time.Time{}, ahead), "ahead of the clock")
		refuses(t, store.ErrInvalid)(s.own.AppendTimed(t.Context(), []event.Sequenced{{Time: ahead, Event: ev("A", "")}}))
	}
	require.Len(t, s.all(t), 3)
	future := time.Now().Add(30 * time.Minute).UTC().Truncate(time.Microsecond)
	require.NoError(t, run(past.AddDate(0, 1, 0), time.Time{}, future, time.Time{}))
	s.add(t, ev("A", ""))
	list := s.all(t)
	require.Len(t, list, 8)
	require.WithinDuration(t, time.Now(), list[4].Time, time.Hour, "one without a time is of now")
	for _, e := range list[5:] {
		require.Equal(t, future, e.Time, "no time is before the last one")
	}
}

// importRenumber: with Renumber, events are appended after the store's events,
// concurrently with other appends. An event with an ID is imported once.
func importRenumber(t *testing.T, h Harness) {
	s := h.events(t)
	s.add(t, ev("First", ""))
	list := oldEvents(4)
	for i := range list {
		list[i].Position, list[i].Time, list[i].ID = 100*uint64(i+1), time.Time{}, idOf(i)
	}
	opts := &store.EventImportOptions{Renumber: true, Batch: 2, Progress: func(store.EventsImported) {
		must(s.Append(soon(t), []event.Event{ev("Between", "")}, nil))(t)
	}}
	done := must(s.own.Import(t.Context(), stream(list, nil), opts))(t)
	require.Equal(t, store.EventsImported{Events: 4, Head: 6}, done)
	opts.Progress = nil
	done = must(s.own.Import(t.Context(), stream(list, nil), opts))(t)
	require.Equal(t, 4, done.Skipped)
	require.Len(t, s.read(t, event.Of("Old"), nil), 4)
	require.Len(t, s.all(t), 7)
}

// importAlone: an append that waits with an append of timed events does not
// share its transaction, and has the current time.
func importAlone(t *testing.T, h Harness) {
	for name, timedFirst := range map[string]bool{"behind": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			s, w := h.watchedEvents(t, store.EventOptions{})
			release := held(t, s)
			defer release()
			var wg sync.WaitGroup
			timed := func(ctx context.Context) error {
				_, err := s.own.AppendTimed(ctx, oldEvents(3))
				return err
			}
			now := func(ctx context.Context) error {
				_, err := s.Append(ctx, []event.Event{ev("Now", "")}, nil)
				return err
			}
			first, second := timed, now
			if !timedFirst {
				first, second = now, timed
			}
			var errs [2]error
			begun := w.begun.Load()
			wg.Go(func() { errs[0] = first(soon(t)) })
			eventually(t, "the leader waits for the writer", func() bool { return w.begun.Load() > begun })
			queued := &queuedContext{Context: soon(t), waits: make(chan struct{})}
			wg.Go(func() { errs[1] = second(queued) })
			<-queued.waits
			release()
			wait(t, &wg)
			require.NoError(t, errs[0])
			if !timedFirst {
				require.ErrorIs(t, errs[1], store.ErrInvalid, "a time would fall")
			} else {
				require.NoError(t, errs[1])
			}
			for _, e := range s.read(t, event.Of("Now"), nil) {
				require.WithinDuration(t, time.Now(), e.Time, time.Hour)
			}
			report := call1(t, s.db.Check, nil)
			require.NoError(t, report.Err())
		})
	}
}
