package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
)

// shore is the line between the events that are durable and those that are only visible,
// on an engine that tells them apart: one group's sync runs while the next group is
// judged and written. On others every commit is durable when it returns, and the line is
// at the end.
//
// An append is acknowledged, and refused, for what is durable; a read ends there. See
// docs/adr/0029-visible-before-durable.md.
type shore struct {
	engine driver.Overlapper // nil where there is no such line
	keeper driver.Keeper     // nil where there is none

	// Solo says that one process has the database, on an engine without such a line. Some
	// of these show a commit to others before it is durable, and then to nobody else: the
	// end is what has been committed here.
	solo bool

	syncing chan struct{} // holds one while somebody syncs

	mu        sync.Mutex
	durable   uint64 // events up to here are
	base, own uint64 // this process committed all events in between, and nobody behind them

	beside bool // something beside events was committed after the last sync began

	pace pace
}

func newShore(db *DB) shore {
	e := db.engine
	overlapper, overlaps := e.(driver.Overlapper)
	return shore{engine: overlapper, keeper: db.keeper(), solo: !overlaps && !e.Capabilities().MultiProcess, syncing: make(chan struct{}, 1)}
}

// begin begins the transaction of a group.
func (s *shore) begin(ctx context.Context, e driver.Engine) (driver.Tx, error) {
	if s.engine == nil {
		return e.Begin(ctx)
	}
	return s.engine.BeginVisible(ctx)
}

// committed notes that this process has committed events, or something beside them.
func (s *shore) committed(after, head uint64, beside bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beside = s.beside || beside
	if after != s.own {
		s.base = after
	}
	s.own = head
	if s.engine == nil {
		keepEvents(s.keeper, head)
	}
}

// settle waits until everything up to a position is durable. Once no other sync runs, and
// before its own, it calls next.
func (s *shore) settle(head uint64, next func()) error {
	s.syncing <- struct{}{}
	defer func() { <-s.syncing }()
	next()
	s.mu.Lock()
	done, beside := s.known(0) >= head && !s.beside, s.beside
	s.beside = false
	s.mu.Unlock()
	if done {
		return nil
	}
	begin := time.Now()
	// A sync that has begun ends: its outcome is everybody's.
	err := s.engine.Sync(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.beside = beside
		return err
	}
	s.pace.synced(time.Since(begin))
	s.known(head)
	return nil
}

// ensure waits until everything up to a position is durable.
func (s *shore) ensure(at uint64) error {
	if s.engine == nil || at <= s.reached() {
		return nil
	}
	return s.settle(at, func() {})
}

// reached returns the position up to which events are known to be durable.
func (s *shore) reached() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known(0)
}

// known notes that events up to a position are durable, and returns up to where they are,
// as far as any process knows: what another one has made durable and read is read here
// from then on. The caller holds mu.
func (s *shore) known(at uint64) uint64 {
	s.durable = s.engine.Durable(max(s.durable, at))
	keepEvents(s.keeper, at)
	return s.durable
}

// visible returns up to where a reader may see, who has seen a position in a view. When
// this process alone has written what is not durable, that is what is: nobody has been
// told of the rest yet. What others have written they may have acknowledged, so it is made
// durable.
func (s *shore) visible(seen uint64) (uint64, error) {
	if s.engine == nil && !s.solo {
		return seen, nil
	}
	s.mu.Lock()
	own := s.own
	if s.solo {
		s.mu.Unlock()
		return min(seen, own), nil
	}
	durable := s.known(0)
	alone := s.base <= durable && seen <= own
	s.mu.Unlock()
	switch {
	case seen <= durable:
		return seen, nil
	case alone:
		return durable, nil
	}
	if err := s.ensure(seen); err != nil {
		return 0, fmt.Errorf("make durable what another process has written: %w", err)
	}
	return seen, nil
}

// bound keeps a look for last events, of which none can be left out afterwards, from what
// is visible too early.
func (s *shore) bound(p *eventlog.Page) {
	if !s.solo || p.Last == nil || p.Visible {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Before == 0 || p.Before > s.own+1 {
		p.Before = s.own + 1
	}
}

// cut leaves out of a page what is not durable. What it leaves out going forwards was
// committed after the read had begun, or is told to nobody yet: the read ends there. A
// last event is made durable instead.
func (s *shore) cut(p *eventlog.Page, list []SequencedEvent, end bool) ([]SequencedEvent, bool, error) {
	if s.engine == nil && !s.solo || p.Visible {
		return list, end, nil
	}
	seen := uint64(0)
	if len(list) > 0 {
		seen = max(list[0].Position, list[len(list)-1].Position)
	}
	if end && p.Head != nil {
		seen = max(seen, *p.Head)
	}
	if p.Last != nil { // the one before is not known
		return list, end, s.ensure(seen)
	}
	to, err := s.visible(seen)
	if err != nil || to >= seen {
		return list, end, err
	}
	if p.Backwards {
		p.Before = to + 1 // in case nothing remains of this page
		for len(list) > 0 && list[0].Position > to {
			list = list[1:]
		}
		return list, end, nil
	}
	for len(list) > 0 && list[len(list)-1].Position > to {
		list = list[:len(list)-1]
	}
	if p.Head != nil {
		*p.Head = to
	}
	return list, true, nil
}

// pace tells whether it pays to write a group beside the sync of the one before. It takes
// two parties of clients: while one waits for the sync the other one is judged. Where a
// sync takes longer than the work for all clients, each party would wait for two of them,
// and one party of all is faster.
type pace struct {
	sync, work atomic.Int64 // nanoseconds, averages: of a sync, and for a request
	inFlight   atomic.Int64 // requests that wait for a sync
}

// weight is the part of a new value in an average.
const weight = 8

func average(of *atomic.Int64, d time.Duration) {
	old := of.Load()
	of.Store(old + (int64(d)-old)/weight)
}

func (p *pace) synced(took time.Duration) { average(&p.sync, took) }

func (p *pace) worked(took time.Duration, requests int) {
	average(&p.work, took/time.Duration(requests))
}

// pays tells whether a sync takes less time than the work for a number of clients.
func (p *pace) pays(clients int) bool { return p.sync.Load() < p.work.Load()*int64(clients) }

// follow waits for the sync of the group before, unless it pays to go on beside it: those
// that it answers come back and are judged together with those that wait. It does not wait
// for one that takes much longer than most.
func (s *shore) follow(waiting int) {
	if s.engine == nil || len(s.syncing) == 0 || s.pace.pays(waiting+int(s.pace.inFlight.Load())) {
		return
	}
	late := time.NewTimer(2 * time.Duration(s.pace.sync.Load()))
	defer late.Stop()
	select {
	case s.syncing <- struct{}{}:
		<-s.syncing
	case <-late.C:
	}
}

// party is how many requests the next group is to have, of those of all clients.
func (s *shore) party(clients int) int {
	if s.engine != nil && s.pace.pays(clients) {
		return (clients + 1) / 2
	}
	return clients
}

// settle waits until the verdicts of a group hold: what they are about is durable. It
// passes the lead before it waits for the sync.
func (e *Events) settle(group []*appendRequest, pass func()) {
	if e.shore.engine == nil {
		return
	}
	n := int64(len(group))
	e.shore.pace.inFlight.Add(n)
	defer e.shore.pace.inFlight.Add(-n)
	if err := e.shore.settle(e.tail.Head(), pass); err != nil {
		lose(group, err)
	}
}

// lose fails a group of which nobody knows whether it is durable.
func lose(group []*appendRequest, err error) {
	for _, r := range group {
		if r.err == nil || errors.Is(r.err, ErrConflict) || errors.Is(r.err, ErrDuplicate) {
			r.positions, r.err = nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
	}
}
