package service

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// write is a queued put or delete.
type write struct {
	ctx      context.Context // the request's, until the block is made
	op       entity.Op       // a put is a Create until the block is planned
	owner    *entity.Address // owner given by the put, or nil
	payload  []byte          // of the put, as it was given
	when     Guard
	waitSpan trace.Span // span of the wait until its block is made

	written Written // the verdict, with err
	err     error
	done    chan struct{} // receives when the write has its verdict
}

func newWrite(ctx context.Context) *write {
	return &write{ctx: ctx, waitSpan: trace.SpanFromContext(context.Background()), done: make(chan struct{}, 1)}
}

func (w *write) answer(err error) {
	w.err = err
	w.done <- struct{}{}
}

// submit queues a write and waits for its verdict. If the request is cancelled
// before its block is made, nothing is written; after that the write completes.
func (s *Service) submit(w *write) (Written, error) {
	w.waitSpan = span(w.ctx, "varve.wait")
	defer w.waitSpan.End()
	enqueue := func() error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.closed {
			return ErrClosing
		}
		select {
		case s.queue <- w:
			return nil
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	if s.reads {
		return Written{}, ErrReadOnly
	}
	if err := enqueue(); err != nil {
		return Written{}, err
	}
	<-w.done
	return w.written, w.err
}

// loop makes blocks, one after another, until the queue is closed and empty.
// Between blocks it checks the store's head.
func (s *Service) loop(ctx context.Context) {
	defer close(s.done)
	defer s.release()
	tick := time.NewTicker(s.opts.Poll)
	defer tick.Stop()
	group := make([]*write, 0, s.opts.MaxGroup)
	for {
		select {
		case first, ok := <-s.queue:
			if !ok {
				return
			}
			group = s.collect(append(group[:0], first))
			s.metrics.group.Observe(float64(len(group)))
			if s.leaseError != nil {
				answer(group, s.leaseError)
			} else {
				s.commit(group)
			}
			clear(group)
		case <-tick.C:
			s.keep(ctx)
			s.refreshHead(ctx)
		}
	}
}

// collect adds the waiting writes, and writes that arrive within the window.
func (s *Service) collect(group []*write) []*write {
	bytes := len(group[0].op.Content)
	var window <-chan time.Time
	if s.opts.Window > 0 {
		timer := time.NewTimer(s.opts.Window)
		defer timer.Stop()
		window = timer.C
	}
	for len(group) < s.opts.MaxGroup && bytes < maxGroupBytes {
		// Yield, because the writers of the last block have just been answered:
		// clients that continue have their next request half read, and can join
		// this block if they run first. A lone writer does not wait for others.
		w, ok := s.next(window, len(group) < s.recentWrites)
		if !ok {
			break
		}
		group = append(group, w)
		bytes += len(w.op.Content)
	}
	s.recentWrites = max(len(group), s.recentWrites-1)
	return group
}

// next returns a write that is waiting or arrives before the window ends; a nil
// window has ended. Without a window it can yield to other goroutines before it
// gives up.
func (s *Service) next(window <-chan time.Time, yield bool) (w *write, ok bool) {
	if window != nil {
		select {
		case w, ok = <-s.queue:
		case <-window:
		}
		return w, ok
	}
	for {
		select {
		case w, ok = <-s.queue:
			return w, ok
		default:
		}
		if !yield {
			return nil, false
		}
		runtime.Gosched()
		yield = false
	}
}

// commit makes a block of a group and answers every write in it. A refused
// write is taken out and the rest is tried again, so that no write fails
// because of another.
func (s *Service) commit(group []*write) {
	// Leave out the writes of requests that have ended.
	group = slices.DeleteFunc(group, func(w *write) bool {
		err := w.ctx.Err()
		if err != nil {
			w.answer(err)
		}
		return err != nil
	})
	reread := false
	for len(group) > 0 {
		// Plan the block.
		p, err := s.plan(group)
		if err != nil {
			answer(group, err)
			return
		}
		if len(p.writes) == 0 {
			p.refuse()
			return
		}

		// Apply it.
		begun, commit := time.Now(), spanCommit(p)
		applied, err := s.ents.Apply(context.Background(), p.block)
		endSpan(commit, err, "varve.changes", uint64(applied.Changes))
		if err == nil {
			s.metrics.commit.Observe(time.Since(begun).Seconds())
			s.publish(p, applied.Head)
			return
		}

		// Find the cause of the failure, and what to try next.
		var bad *entity.OpError
		switch {
		case errors.As(err, &bad) && int(bad.TxIndex) < len(p.writes):
			w := p.writes[bad.TxIndex]
			w.answer(withoutPlace(err))
			group = slices.DeleteFunc(group, func(other *write) bool { return other == w })
		case errors.Is(err, store.ErrBlockOrder) && !reread:
			// Another writer wrote to the store, which is forbidden. Cached
			// entities may be wrong, but the next block need not fail.
			reread = true
			s.cache.forget()
			if err := s.readHead(context.Background()); err != nil {
				answer(group, err)
				return
			}
		default:
			if errors.Is(err, store.ErrUnknownOutcome) {
				s.cache.forget()
				err = errors.Join(err, s.readHead(context.Background()))
			}
			if len(group) == 1 || slices.ContainsFunc(failures, func(cause error) bool { return errors.Is(err, cause) }) {
				answer(group, err)
				return
			}
			// One of the writes may be the cause, so give each a separate
			// block.
			for _, w := range slices.Clone(group) {
				s.commit([]*write{w})
			}
			return
		}
	}
}

// failures are the errors of the store as a whole, whichever write encounters
// them.
var failures = []error{
	store.ErrClosed, store.ErrLocked, driver.ErrDiskFull, store.ErrReadOnly, store.ErrCorrupt, store.ErrUnknownOutcome, store.ErrBlockOrder,
}

// publish passes the changes of a block to the cache, and then answers the
// writers.
func (s *Service) publish(p *plan, to store.BlockHeader) {
	s.head.move(to, func() {}) // the cache is updated below
	for key, st := range p.states {
		if st.changed {
			s.cache.publish(key, st.now)
		}
	}
	answer(p.writes, nil)
	p.refuse()
}

func answer(group []*write, err error) {
	for _, w := range group {
		w.answer(err)
	}
}
