package service

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/varvedb/varve/store"
)

// A batch of a stream of events is sent when it has as many events or bytes. One event
// may have more.
const (
	batchEvents = 256
	batchBytes  = 256 << 10
)

// batch is events on their way to a client.
type batch struct {
	events []store.SequencedEvent
	bytes  int
}

func (b *batch) add(e *store.SequencedEvent) {
	b.events = append(b.events, *e)
	b.bytes += len(e.Data) + len(e.Metadata)
}

func (b *batch) full() bool { return len(b.events) >= batchEvents || b.bytes >= batchBytes }

// InBatches gives what a read yields to send, and returns the rest, so that the caller
// can send it together with the end. Before an error of the read everything is sent. What
// is sent may not be kept.
func InBatches(events iter.Seq2[store.SequencedEvent, error], send func([]store.SequencedEvent) error) (rest []store.SequencedEvent, err error) {
	var b batch
	for e, err := range events {
		if b.full() || err != nil && len(b.events) > 0 {
			if err := send(b.events); err != nil {
				return nil, err
			}
			b = batch{events: b.events[:0]}
		}
		if err != nil {
			return nil, err
		}
		b.add(&e)
	}
	return b.events, nil
}

// Follow gives what a subscription yields to send, as soon as it is there: while one
// batch is sent the next is collected, and no more than one, so that a client that takes
// nothing costs no more memory than that and holds no view of the store. It ends with the
// error of the subscription or of send, or with ErrClosing when ending is closed. What is
// sent may not be kept. Every idle, unless that is zero, a batch is sent even if it is
// empty.
func Follow(ctx context.Context, ending <-chan struct{}, idle time.Duration, subscribe func(context.Context) iter.Seq2[store.SequencedEvent, error], send func([]store.SequencedEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{some: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(func() { f.collect(ctx, subscribe(ctx)) })
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
		if err != nil {
			return err
		}
	}
}

// follower is what is between a subscription and its client.
type follower struct {
	some chan struct{} // there is something to take
	room chan struct{} // it was taken

	mu          sync.Mutex
	next, spare batch
	err         error // why nothing comes any more
}

// collect collects until the subscription ends.
func (f *follower) collect(ctx context.Context, events iter.Seq2[store.SequencedEvent, error]) {
	for e, err := range events {
		if !f.put(ctx, &e, err) {
			return
		}
	}
}

// put waits for room and adds an event, or why there is none.
func (f *follower) put(ctx context.Context, e *store.SequencedEvent, err error) (more bool) {
	f.mu.Lock()
	for f.next.full() {
		f.mu.Unlock()
		select {
		case <-f.room:
		case <-ctx.Done():
			return false
		}
		f.mu.Lock()
	}
	if f.err = err; err == nil {
		f.next.add(e)
	}
	f.mu.Unlock()
	signal(f.some)
	return err == nil
}

// take returns what was collected, which stands until it is called again.
func (f *follower) take() ([]store.SequencedEvent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.next
	clear(f.spare.events)
	f.next, f.spare = batch{events: f.spare.events[:0]}, taken
	signal(f.room)
	return taken.events, f.err
}

// signal leaves a signal unless one is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
