package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// safetyNet is how often subscriptions poll although other processes' appends
// are reported, because a dead connection may go unnoticed.
const safetyNet = 5 * time.Second

// listener receives the appends of other processes, while there are
// subscriptions, on engines that report them.
type listener struct {
	mu      sync.Mutex
	users   int
	cancel  func() // ends listening; nil when no goroutine listens
	running sync.WaitGroup
	closed  bool

	hears atomic.Bool
}

// listen starts listening for a subscription, until the returned function is
// called.
func (e *Events) listen() (leave func()) {
	engine, ok := e.db.engine.(driver.Listener)
	if !ok {
		return func() {}
	}
	l := &e.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users++; l.cancel == nil && !l.closed {
		ctx, cancel := context.WithCancel(context.Background())
		l.cancel = cancel
		l.running.Go(func() { e.wakeOnCommits(ctx, engine) })
	}
	return func() {
		time.AfterFunc(safetyNet, func() { // a subscription that starts before then reuses the listener
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.users--; l.users == 0 {
				l.end()
			}
		})
	}
}

// end stops listening and waits until it has stopped. The caller holds mu.
func (l *listener) end() {
	if l.cancel != nil {
		l.cancel()
		l.running.Wait()
		l.cancel = nil
	}
}

// close stops listening permanently.
func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.end()
}

// wakeOnCommits wakes subscriptions at each commit of another process. It
// reopens a lost connection; meanwhile subscriptions poll.
func (e *Events) wakeOnCommits(ctx context.Context, engine driver.Listener) {
	for ctx.Err() == nil {
		listening, err := engine.Listen(ctx)
		if errors.Is(err, ErrUnsupported) {
			return
		}
		if err == nil {
			e.listener.hears.Store(true)
			for ; err == nil; err = listening.Wait(ctx) {
				e.news.publish() // first for commits that came before
			}
			e.listener.hears.Store(false)
			_ = listening.Close() // the next wait listens again
			e.news.publish()
		}
		select {
		case <-ctx.Done():
		case <-time.After(e.opts.PollInterval):
		}
	}
}

// pollInterval is how long a subscription waits before it polls: long if other
// processes' appends are reported, and practically never if no other process
// can append.
func (e *Events) pollInterval() time.Duration {
	if e.listener.hears.Load() || !e.db.engine.Capabilities().MultiProcess {
		return max(e.opts.PollInterval, safetyNet)
	}
	return e.opts.PollInterval
}
