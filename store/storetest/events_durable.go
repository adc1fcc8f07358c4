package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// runEventDurable tests events between their commit and the sync that makes
// them durable, on engines that commit and sync concurrently. Then it repeats
// suites of appends with durable commits.
func runEventDurable(t *testing.T, h Harness) {
	db := h.open(t, h.NewURL(t), nil)
	if _, ok := db.Engine().(driver.Overlapper); !ok {
		t.Skip("a commit is durable when it returns")
	}
	parts[Harness]{
		{"hidden", durableHidden},
		{"verdicts", durableVerdicts},
		{"two processes", durableProcesses},
		{"checkpoint", durableCheckpoint},
		{"failure", durableFailure},
	}.run(t, h)
	h.durable = true
	parts[Harness]{
		{"group", runEventGroup},
		{"linearizable", runEventLinearizable},
		{"subscribe", runEventSubscribe},
	}.run(t, h)
}

// syncGate makes syncs wait, or fail.
type syncGate struct {
	mu     sync.Mutex
	gate   chan struct{} // syncs wait until it is closed; nil: they do not wait
	done   int
	failed error
}

func (g *syncGate) see(call, _ string) error {
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	if call == "sync" && gate != nil {
		<-gate
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch call {
	case "sync":
		g.done++
		return g.failed
	case "visible":
		return g.failed
	}
	return nil
}

// hold makes syncs wait until the returned function is called with their
// result.
func (g *syncGate) hold() (release func(err error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := make(chan struct{})
	g.gate = gate
	return func(err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.gate == gate {
			g.gate, g.failed = nil, err
			close(gate)
		}
	}
}

func (g *syncGate) syncs() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done
}

// heldEvents opens an event store with a gate for its syncs.
func (h Harness) heldEvents(t *testing.T, rawURL string) (eventStream, *syncGate) {
	t.Helper()
	g := &syncGate{}
	return h.openEvents(t, tap(g.see).tapped(t, rawURL, true), store.EventOptions{IndexEvery: 4}), g
}

// later appends in a goroutine.
func (s eventStream) later(e event.Event, cond *event.Condition) <-chan appended {
	done := make(chan appended, 1)
	go func() {
		positions, err := s.Append(context.Background(), []event.Event{e}, cond)
		done <- appended{positions, err}
	}()
	return done
}

// visible waits until the store has a number of events, durable or not.
func (s eventStream) visible(t *testing.T, n int) {
	t.Helper()
	eventually(t, "the events are visible", func() bool {
		return len(s.read(t, event.All(), &event.ReadOptions{Visible: true})) == n
	})
}

// durableHidden: only a read with Visible returns events that are not durable.
// The next group is committed during the sync.
func durableHidden(t *testing.T, h Harness) {
	s, e := h.heldEvents(t, h.NewURL(t))
	first := s.add(t, ev("A", "durable", "k:v"))
	release := e.hold()
	defer release(nil)
	one := s.later(ev("A", "one", "k:v"), nil)
	s.visible(t, 2)
	two := s.later(ev("A", "two", "k:v"), nil)
	s.visible(t, 3) // during the sync of the first one

	for name, q := range map[string]event.Query{"all": event.All(), "tag": event.Tagged(tagList([]string{"k:v"})...)} {
		head := uint64(0)
		require.Equal(t, "durable", s.names(t, q, &event.ReadOptions{Head: &head}), name)
		require.Equal(t, first[0], head)
		require.Equal(t, "durable", s.names(t, q, &event.ReadOptions{Limit: 2}), name)
		require.Equal(t, "durable", s.names(t, q, &event.ReadOptions{Backwards: true, Limit: 1}), name)
		require.Empty(t, s.names(t, q, &event.ReadOptions{From: first[0] + 1}))
		require.Equal(t, "two one durable", s.names(t, q, &event.ReadOptions{Backwards: true, Visible: true}), name)
	}
	head := call(t, s.Head)
	require.Equal(t, first[0], head)
	count := event.NewProjection(event.All(), 0, func(n int, _ *event.Sequenced) int { return n + 1 })
	cond := must(event.Project(t.Context(), s, count))(t)
	require.Equal(t, first[0], cond.After)
	select {
	case <-one:
		t.Fatal("it was acknowledged before its sync has ended")
	case <-two:
		t.Fatal("it was acknowledged before its sync has begun")
	default:
	}
	release(nil)
	require.Equal(t, appended{positions: []uint64{first[0] + 1}}, <-one)
	require.Equal(t, appended{positions: []uint64{first[0] + 2}}, <-two)
	require.Equal(t, "durable one two", s.names(t, event.All(), nil))
	done := e.syncs()
	require.GreaterOrEqual(t, done, 3, "a sync for each group")
}

// durableVerdicts: an append that conflicts with an event that is not durable,
// or repeats it, waits until the event is durable.
func durableVerdicts(t *testing.T, h Harness) {
	s, e := h.heldEvents(t, h.NewURL(t))
	s.add(t, ev("A", "durable"))
	claim := ev("Claimed", "", "name:x")
	claim.ID = idOf(1)
	release := e.hold()
	defer release(nil)
	won := s.later(claim, nil)
	s.visible(t, 2)
	lost := s.later(ev("Claimed", "", "name:x"), event.Unless(event.Tagged(claim.Tags...)))
	again := s.later(claim, nil)
	select {
	case got := <-lost:
		t.Fatal("it was refused for an event that is not durable", got)
	case got := <-again:
		t.Fatal("it was found where it is not durable", got)
	case <-time.After(20 * time.Millisecond): // longer than an append takes
	}
	release(nil)
	first := <-won
	require.NoError(t, first.err)
	require.ErrorIs(t, (<-lost).err, store.ErrConflict)
	require.Equal(t, first, <-again)
}

// durableProcesses: a process that reads events of another process syncs them
// first, because it cannot know whether they are durable.
func durableProcesses(t *testing.T, h Harness) {
	rawURL := h.NewURL(t)
	s, e := h.heldEvents(t, rawURL)
	other, o := h.heldEvents(t, rawURL)
	s.add(t, ev("A", "one"))
	require.Equal(t, "one", other.names(t, event.All(), nil))
	before := o.syncs()
	require.Zero(t, before, "who has written it has said that it is durable")
	release := e.hold()
	defer release(nil)
	two := s.later(ev("A", "two"), nil)
	s.visible(t, 2)
	require.Equal(t, "one", s.names(t, event.All(), nil))
	require.Equal(t, "one two", other.names(t, event.All(), nil))
	require.Equal(t, "one two", other.names(t, event.All(), nil))
	after := o.syncs()
	require.Equal(t, before+1, after, "once is enough")
	require.Equal(t, "one two", s.names(t, event.All(), nil), "what one has read all read from then on")

	release(nil)
	require.NoError(t, (<-two).err)
	// Below the events of the first process there are now events of the other one.
	releaseOther := o.hold()
	defer releaseOther(nil)
	three := other.later(ev("A", "three"), nil)
	s.visible(t, 3)
	release = e.hold()
	four := s.later(ev("A", "four"), nil)
	s.visible(t, 4)
	read := make(chan string)
	go func() { read <- s.names(t, event.All(), nil) }()
	select {
	case got := <-read:
		t.Fatalf("it knows not whether the other one is durable, and read %q", got)
	case <-time.After(20 * time.Millisecond): // longer than a read takes
	}
	release(nil)
	require.Contains(t, <-read, "one two three")
	require.NoError(t, (<-four).err)
	releaseOther(nil)
	require.NoError(t, (<-three).err)
}

// durableCheckpoint: a consumer that moves without an event is acknowledged when
// its checkpoint is durable, and gets the error of a sync that fails.
func durableCheckpoint(t *testing.T, h Harness) {
	s, e := h.heldEvents(t, h.NewURL(t))
	for range 3 {
		s.add(t, ev("A", ""))
	}
	move := func(from, to uint64) error {
		_, err := s.Advance(t.Context(), event.Checkpoint{Consumer: "c", From: from, To: to}, nil, nil)
		return err
	}
	require.NoError(t, move(0, 1))
	before := e.syncs()
	require.NoError(t, move(1, 2))
	after := e.syncs()
	require.Equal(t, before+1, after)
	broken := errors.New("the disk is gone")
	release := e.hold()
	moved := async(func() error { return move(2, 3) })
	requireWaits(t, moved)
	release(broken)
	err := <-moved
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorIs(t, err, broken)
}

// durableFailure: when a sync fails, each append of it gets the error, and
// later appends fail.
func durableFailure(t *testing.T, h Harness) {
	s, e := h.heldEvents(t, h.NewURL(t))
	s.add(t, ev("A", "durable"))
	release := e.hold()
	one := s.later(ev("A", "one", "k:v"), nil)
	s.visible(t, 2)
	two := s.later(ev("A", "two"), event.Unless(event.Tagged(tagList([]string{"k:v"})...)))
	three := s.later(ev("A", "three"), nil)
	broken := errors.New("the disk is gone")
	release(broken)
	got := <-one
	require.ErrorIs(t, got.err, store.ErrUnknownOutcome)
	require.ErrorIs(t, got.err, broken)
	require.ErrorIs(t, (<-two).err, broken)
	require.ErrorIs(t, (<-three).err, broken)
	refuses(t, broken)(s.Append(t.Context(), []event.Event{ev("A", "four")}, nil))
	require.Equal(t, "durable", s.names(t, event.All(), nil))
}
