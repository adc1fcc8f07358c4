package service

import (
	"context"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
)

// linger is how long a subscription keeps what the store has read ahead while its client takes
// a batch. After that it gives it up, and reads it again.
const linger = 100 * time.Millisecond

// stream yields events from a position on, without end.
type stream = func(ctx context.Context, from uint64) iter.Seq2[store.SequencedEvent, error]

// Follow gives what a subscription yields to send, as soon as it is there: while one batch is
// sent the next is collected, and no more than one, so that a client that takes nothing costs no
// more memory than that and holds no view of the store. A large event is a batch alone, is held
// and sent before the next is collected. Follow ends with the error of the subscription or of
// send, or with ErrClosing when ending is closed. What is sent may not be kept. Every idle,
// unless that is zero, a batch is sent even if it is empty.
func Follow(ctx context.Context, ending <-chan struct{}, idle time.Duration, from uint64, subscribe stream, hold *quota.Hold, send func([]store.SequencedEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{from: from, hold: hold, some: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(func() { f.collect(ctx, subscribe) })
	defer hold.Release()
	defer running.Wait()
	defer cancel()
	var beat <-chan time.Time
	if idle > 0 {
		ticker := time.NewTicker(idle)
		defer ticker.Stop()
		beat = ticker.C
	}
	for {
		silent := false
		select {
		case <-ending:
			return ErrClosing
		case <-f.some:
		case <-beat:
			silent = true
		}
		events, err := f.take()
		if len(events) > 0 || silent {
			if err := send(events); err != nil {
				return err
			}
		}
		f.sent()
		if err != nil {
			return err
		}
	}
}

// follower is what is between a subscription and its client.
type follower struct {
	some chan struct{} // there is something to take
	room chan struct{} // something was taken or sent

	// The collector's own.
	from  uint64 // the first position that was not collected
	wants int64  // memory for the event there

	mu          sync.Mutex
	next, spare batch
	sending     bool        // spare is being sent
	hold        *quota.Hold // of a large event; the collector's own while it waits for memory
	err         error       // why nothing comes any more
}

// collect collects until the subscription ends. While there is no room it leaves the
// subscription, and with it what the store has read ahead.
func (f *follower) collect(ctx context.Context, subscribe stream) {
	for ctx.Err() == nil {
		for e, err := range subscribe(ctx, f.from) {
			if err != nil {
				f.end(err)
				return
			}
			if !f.put(&e) && (!f.linger(ctx) || !f.put(&e)) {
				break
			}
			f.from = e.Position + 1
		}
		if f.wants == 0 {
			f.wait(ctx, math.MaxInt64)
		} else if err := f.hold.Take(ctx, f.wants); err != nil {
			f.end(err)
			return
		}
	}
	f.end(ctx.Err())
}

// put adds an event, if there is room.
func (f *follower) put(e *store.SequencedEvent) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wants = 0
	if alone := (&batch{bytes: eventBytes(&e.Event)}).memory(); alone > 0 {
		if f.sending || len(f.next.events) > 0 {
			return false
		}
		if !f.hold.Try(alone) {
			f.wants = alone
			return false
		}
	}
	if !f.next.add(e) {
		return false
	}
	signal(f.some)
	return true
}

// wait waits until something was taken or sent, and tells whether it was.
func (f *follower) wait(ctx context.Context, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-f.room:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// linger waits a little for room, if what the store has read ahead can be held so long.
func (f *follower) linger(ctx context.Context) bool {
	page := f.hold.Another()
	defer page.Release()
	return f.wants == 0 && page.Try(readAhead) && f.wait(ctx, linger)
}

// end says why nothing comes any more.
func (f *follower) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	signal(f.some)
}

// take returns what was collected, which stands until it was sent.
func (f *follower) take() ([]store.SequencedEvent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.spare = f.spare, f.next
	f.sending = true
	if f.spare.memory() > 0 {
		f.hold.Await()
	}
	signal(f.room)
	return f.spare.events, f.err
}

// sent gives back what was taken.
func (f *follower) sent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spare.memory() > 0 {
		f.hold.Release()
	}
	f.spare.reset()
	f.sending = false
	signal(f.room)
}

// signal leaves a signal unless one is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
