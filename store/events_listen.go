package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// safetyNet is how often subscriptions look for what other processes appended while these
// are heard: a connection can be dead without telling.
const safetyNet = 5 * time.Second

// ears hear what other processes append, while there are subscriptions, on engines that
// let them.
type ears struct {
	mu    sync.Mutex
	users int
	stop  func() // ends listening and waits for it; nil when nobody listens
	live  bool
	deaf  bool // the database is closed
}

// listen begins to hear for a subscription, until the returned function is called.
func (e *Events) listen() (leave func()) {
	engine, ok := e.db.engine.(driver.Listener)
	if !ok {
		return func() {}
	}
	e.ears.mu.Lock()
	defer e.ears.mu.Unlock()
	if e.ears.users++; e.ears.stop == nil && !e.ears.deaf {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { e.hear(ctx, engine) })
		e.ears.stop = func() { cancel(); running.Wait() }
	}
	return func() {
		e.ears.mu.Lock()
		e.ears.users--
		e.ears.mu.Unlock()
		e.ears.quiet(false)
	}
}

// quiet ends listening when nobody wants it any more, or for good.
func (l *ears) quiet(forGood bool) {
	l.mu.Lock()
	l.deaf = l.deaf || forGood
	stop := l.stop
	if l.users > 0 && !l.deaf {
		stop = nil
	}
	if stop != nil {
		l.stop = nil
	}
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// hear wakes subscriptions at each commit of another process. A connection that was lost
// is made again; meanwhile subscriptions poll.
func (e *Events) hear(ctx context.Context, engine driver.Listener) {
	for ctx.Err() == nil {
		listening, err := engine.Listen(ctx)
		if errors.Is(err, ErrUnsupported) {
			return
		}
		if err == nil {
			e.ears.set(true)
			for ; err == nil; err = listening.Wait(ctx) {
				e.news.publish() // the first time for what came before
			}
			e.ears.set(false)
			_ = listening.Close() // it is made anew
			e.news.publish()
		}
		select {
		case <-ctx.Done():
		case <-time.After(e.opts.PollInterval):
		}
	}
}

func (l *ears) set(live bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = live
}

// pollInterval is how long a subscription waits for news before it looks: hardly ever
// where others are heard, or cannot append.
func (e *Events) pollInterval() time.Duration {
	e.ears.mu.Lock()
	defer e.ears.mu.Unlock()
	if e.ears.live || !e.db.engine.Capabilities().MultiProcess {
		return max(e.opts.PollInterval, safetyNet)
	}
	return e.opts.PollInterval
}
