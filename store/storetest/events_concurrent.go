package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// Names and racers of runEventRace.
const (
	raceNames  = 50
	raceRacers = 16
)

// runEventRace lets 16 racers claim each of 50 names that they found free. Each
// name must have one winner, also among several processes. For comparison,
// go-crablet, whose conditions take no lock, had 542 winners of 50.
func runEventRace(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	processes := []eventStream{s, s.another(t, h)}
	var winners [raceNames]atomic.Int64
	start := make(chan struct{})
	var wg sync.WaitGroup
	for n := range raceNames * raceRacers {
		name, via := n%raceNames, processes[n/raceNames%2]
		wg.Go(func() {
			<-start
			claim := ev("Claimed", fmt.Sprint(n), fmt.Sprintf("name:%d", name))
			taken := seen(event.Tagged(claim.Tags...))
			cond, err := event.Project(soon(t), via, taken)
			if err != nil {
				t.Error(err)
			}
			if err != nil || taken.State {
				return
			}
			switch _, err = via.Append(soon(t), []event.Event{claim}, cond); {
			case err == nil:
				winners[name].Add(1)
			case !errors.Is(err, store.ErrConflict):
				t.Error(err)
			}
		})
	}
	close(start)
	wait(t, &wg)
	for name := range winners {
		require.EqualValues(t, 1, winners[name].Load(), "winners of name %d", name)
	}
	require.Len(t, s.all(t), raceNames)
}

// runEventGroup tests appends that share commits.
var runEventGroup = parts[Harness]{
	{"cancel", groupCancel},
	{"queue", groupQueue},
	{"failure", groupFailure},
	{"close", groupClose},
}.run

// held opens the writer's transaction, so that appends queue behind it.
func held(t testing.TB, s eventStream) (release func()) {
	t.Helper()
	tx := begin(t, s.db.Engine())
	return sync.OnceFunc(func() { require.NoError(t, tx.Rollback()) })
}

// groupCancel cancels appends at random. Each is stored whole, at the positions
// that were returned, or not at all.
func groupCancel(t *testing.T, h Harness) {
	s := h.events(t)
	const workers, each = 8, 25
	var mu sync.Mutex
	outcome := map[string][]uint64{}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for n := range each {
				name := fmt.Sprintf("%d-%d", w, n)
				ctx, cancel := context.WithCancel(soon(t))
				timer := time.AfterFunc(time.Duration(rnd.IntN(2000))*time.Microsecond, cancel)
				positions, err := s.Append(ctx, []event.Event{ev("A", name, "of:"+name), ev("B", name, "of:"+name)}, nil)
				timer.Stop()
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				mu.Lock()
				outcome[name] = positions
				if unknown := errors.Is(err, store.ErrUnknownOutcome); unknown && h.connect != nil {
					outcome[name] = []uint64{unknownPosition, unknownPosition + 1}
				} else if unknown {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wait(t, &wg)
	stored := map[string][]uint64{}
	for _, e := range s.all(t) {
		stored[string(e.Data)] = append(stored[string(e.Data)], e.Position)
	}
	for name, positions := range outcome {
		if len(positions) > 0 && positions[0] == unknownPosition {
			if positions = stored[name]; len(positions) > 0 {
				positions = []uint64{positions[0], positions[0] + 1}
			}
		}
		require.Equal(t, positions, stored[name], "append %s", name)
	}
	s.add(t, ev("A", "after all"))
}

// unknownPosition stands for the position of an append that was cancelled on
// its way to another process, because its outcome is not known.
const unknownPosition = math.MaxUint64 - 1

// groupQueue fills a short queue and cancels appends that wait for a place.
func groupQueue(t *testing.T, h Harness) {
	s := h.openEvents(t, h.quickURL(t), store.EventOptions{Queue: 2})
	release := held(t, s)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var stored, cancelled atomic.Int64
	for i := range 12 {
		wg.Go(func() {
			c := soon(t)
			if i%2 == 0 {
				c = ctx
			}
			switch _, err := s.Append(c, []event.Event{ev("A", fmt.Sprint(i))}, nil); {
			case err == nil:
				stored.Add(1)
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	cancel()
	for cancelled.Load() < 6 { // while the writer is held, no append is stored
		time.Sleep(time.Millisecond)
	}
	release()
	wait(t, &wg)
	require.EqualValues(t, 6, stored.Load())
	require.Len(t, s.all(t), 6)
}

// groupFailure makes a write of two appends fail once. Each is tried alone then,
// and both succeed.
func groupFailure(t *testing.T, h Harness) {
	var broken atomic.Bool
	url := tap(func(call, _ string) error {
		if call == "insert" && broken.CompareAndSwap(true, false) {
			return errBroken
		}
		return nil
	}).tapped(t, h.quickURL(t), true)
	s := h.openEvents(t, url, store.EventOptions{Queue: 2})
	s.add(t, ev("A", "before"))
	release := held(t, s)
	defer release()
	one, two := s.later(ev("A", "one"), nil), s.later(ev("A", "two"), nil)
	eventually(t, "both wait for the writer", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := s.Append(ctx, []event.Event{ev("A", "third")}, nil)
		require.Error(t, err)
		return strings.Contains(err.Error(), "wait for a place")
	})
	broken.Store(true)
	release()
	require.NoError(t, (<-one).err)
	require.NoError(t, (<-two).err)
	require.False(t, broken.Load(), "the first write has failed")
	require.Len(t, s.all(t), 3)
}

// groupClose closes the database while appends wait. Each gets an outcome, and
// acknowledged events are in the store.
func groupClose(t *testing.T, h Harness) {
	s := h.events(t)
	var acknowledged atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				_, err := s.Append(soon(t), []event.Event{ev("A", "")}, nil)
				if err != nil {
					if !errors.Is(err, store.ErrClosed) {
						t.Error(err)
					}
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	for acknowledged.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	closeDB(t, s.db)
	wait(t, &wg)
	s = h.openEvents(t, s.url, store.EventOptions{})
	require.EqualValues(t, acknowledged.Load(), len(s.all(t)))
}

// linearTags is the number of tags in the model of porcupine, which knows the
// last position of each tag and the head.
const linearTags = 3

type linearState struct {
	last [linearTags]uint64
	head uint64
}

type linearInput struct {
	read  bool
	tags  int // set of tags of the event or the read
	guard int // set of tags of the condition's items
	after uint64
}

type linearOutput struct {
	position uint64 // appended or last read
	conflict bool
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
		if in.read {
			return s.highest(in.tags) == out.position, s
		}
		if conflict := s.highest(in.guard) > in.after; conflict || out.conflict {
			return conflict == out.conflict, s
		}
		if out.position <= s.head {
			return false, s
		}
		for i := range s.last {
			if in.tags>>i&1 == 1 {
				s.last[i] = out.position
			}
		}
		s.head = out.position
		return true, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
}

func (s linearState) highest(tags int) (at uint64) {
	for i, p := range s.last {
		if tags>>i&1 == 1 {
			at = max(at, p)
		}
	}
	return at
}

// runEventLinearizable checks random concurrent histories of reads and
// conditional appends: some sequence of the same calls, in keeping with real
// time, has the same results.
func runEventLinearizable(t *testing.T, h Harness) {
	const clients, each = 6, 30
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := h.indexedEvents(t)
	processes := []eventStream{s, s.another(t, h)}
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	begin := time.Now()
	for c := range clients {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			known := uint64(0)
			for range each {
				in := linearInput{read: rnd.IntN(3) == 0, tags: 1 + rnd.IntN(1<<linearTags-1), guard: 1 + rnd.IntN(1<<linearTags-1), after: known}
				call := time.Since(begin)
				out, err := linearCall(processes[c%2], in)
				done := time.Since(begin)
				if err != nil {
					t.Error(err)
					return
				}
				known = max(known, out.position)
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: c, Input: in, Call: int64(call), Output: out, Return: int64(done)})
				mu.Unlock()
			}
		})
	}
	wait(t, &wg)
	require.Len(t, history, clients*each)
	switch porcupine.CheckOperationsTimeout(linearModel, history, time.Minute) {
	case porcupine.Illegal:
		t.Fatalf("seed %d: the history is not linearizable", seed)
	case porcupine.Unknown:
		t.Fatalf("seed %d: the history was not checked within a minute", seed)
	}
}

func linearCall(s eventStream, in linearInput) (out linearOutput, err error) {
	ctx := context.Background()
	tag := func(i int) event.Tag { return event.NewTag("t", fmt.Sprint(i)) }
	var guard event.Query
	set := in.guard
	if in.read {
		set = in.tags
	}
	for i := range linearTags {
		if set>>i&1 == 1 {
			guard.Items = append(guard.Items, event.Item{Tags: []event.Tag{tag(i)}})
		}
	}
	if in.read {
		for e, err := range s.Read(ctx, guard, &event.ReadOptions{Backwards: true, Limit: 1}) {
			return linearOutput{position: e.Position}, err
		}
		return out, nil
	}
	e := event.Event{Type: "L"}
	for i := range linearTags {
		if in.tags>>i&1 == 1 {
			e.Tags = append(e.Tags, tag(i))
		}
	}
	positions, err := s.Append(ctx, []event.Event{e}, &event.Condition{FailIfEventsMatch: guard, After: in.after})
	switch {
	case errors.Is(err, store.ErrConflict):
		return linearOutput{conflict: true}, nil
	case err != nil:
		return out, err
	}
	return linearOutput{position: positions[0]}, nil
}
