package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// slots bounds the readers that are open at once. Who wants several gets all of
// them together or none: two that each hold a part and wait for the rest would wait
// for ever. Waiting is first come, first served, with one exception: see slotsWait.
type slots struct {
	mu      sync.Mutex
	total   int
	free    int
	waiting []*waiter // in the order in which they are served
	idle    []*Conn   // the last one used is used next, since its cache is warm
}

// waiter waits for n slots.
type waiter struct {
	n       int
	granted chan struct{} // closed once they are its own
}

// slotsWait is how long somebody who wants several slots keeps those behind from a
// free one, before they are let past. Without a wait like this it would not be
// served beside many that want one each; without an end to it, a caller that holds a
// reader of which it waits, and asks for another, would wait for ever.
const slotsWait = 100 * time.Millisecond

func newSlots(n int) slots { return slots{total: n, free: n} }

// take waits for n slots until ctx is done or closing is closed. Neither is left to
// chance when they are free at once.
func (s *slots) take(ctx context.Context, closing <-chan struct{}, n int) error {
	if n > s.total {
		return fmt.Errorf("%d readers are needed at once, the database is open with %d; open it with readers=%d or more: %w",
			n, s.total, n, driver.ErrUnsupported)
	}
	if err := ended(ctx, closing); err != nil {
		return err
	}
	s.mu.Lock()
	if len(s.waiting) == 0 && s.free >= n {
		s.free -= n
		s.mu.Unlock()
		return nil
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	return s.await(ctx, closing, w)
}

func ended(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-closing:
		return driver.ErrClosed
	default:
		return ctx.Err()
	}
}

func (s *slots) await(ctx context.Context, closing <-chan struct{}, w *waiter) error {
	var step <-chan time.Time
	if w.n > 1 {
		ticker := time.NewTicker(slotsWait)
		defer ticker.Stop()
		step = ticker.C
	}
	for {
		var err error
		select {
		case <-w.granted:
			return nil
		case <-step:
			s.stepBack(w)
			continue
		case <-closing:
			err = driver.ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.withdraw(w)
		return err
	}
}

// stepBack lets those behind a waiter past it.
func (s *slots) stepBack(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = append(slices.Delete(s.waiting, i, i+1), w)
		s.grant()
	}
}

// withdraw takes a waiter out, with what it may have been given meanwhile.
func (s *slots) withdraw(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		s.free += w.n
	}
	s.grant()
}

// grant serves the first waiters as far as slots are free. The caller holds mu.
func (s *slots) grant() {
	for len(s.waiting) > 0 && s.waiting[0].n <= s.free {
		w := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.free -= w.n
		close(w.granted)
	}
}

// conn returns an idle connection for a slot that was taken, nil when there is none.
func (s *slots) conn() *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	last := len(s.idle) - 1
	c := s.idle[last]
	s.idle = s.idle[:last]
	return c
}

// give gives a slot back, with its connection unless that is nil.
func (s *slots) give(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil {
		s.idle = append(s.idle, c)
	}
	s.free++
	s.grant()
}
