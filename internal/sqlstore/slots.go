package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// slots bounds the readers that are open at once, and of these the ones in their turn.
//
// Who wants several gets all of them together or none: two that each hold a part and wait for the rest would wait for
// ever. Waiting is first come, first served, with one exception: see slotsWait.
type slots struct {
	mu      sync.Mutex
	total   int
	free    int
	abreast int       // turns at the same time
	turns   []*turn   // the oldest first; those at the front may be over
	waiting []*waiter // in the order in which they are served
	idle    []*Conn   // that of the lowest seat is used next: see Conn.Seat
	seats   []bool    // those that have a connection

	alarm *time.Timer // rings when the oldest turn is over, if somebody waits for that
	armed bool
}

// turn is the time in which the readers that were taken together have a processor to
// themselves: until all are closed, but no longer than turnLength.
//
// More readers at work than processors get no more done. Go lets a goroutine run for 10 ms and then all others as
// long, and so does the kernel with threads: a client does a hundred reads, and the next one, however small, is cut
// in two and waits for everybody's 10 ms. In turns each read waits for those before it.
type turn struct {
	readers int // not closed yet
	since   time.Time
}

// turnLength is when a turn is over though its readers are open. A caller may keep a reader for as long as he likes,
// and open another meanwhile: then the reader goes on without a turn, beside those who have one. It is longer than
// most reads, also where others want the processors, and as short as those who wait can bear.
const turnLength = 20 * time.Millisecond

// waiter waits for n slots and a turn.
type waiter struct {
	n       int
	turn    *turn         // its own once granted
	granted chan struct{} // closed then
}

// slotsWait is how long somebody who wants several slots keeps those behind from a free one, before they are let
// past. Without a wait like this it would not be served beside many that want one each; without an end to it, a
// caller that holds a reader of which it waits, and asks for another, would wait for ever.
const slotsWait = 100 * time.Millisecond

// newSlots returns n slots of which abreast may be in their turn.
func newSlots(n, abreast int) slots {
	return slots{total: n, free: n, abreast: abreast, seats: make([]bool, n)}
}

// take waits for n slots and a turn for them, until ctx is done or closing is closed.
// Neither is left to chance when they are free at once.
func (s *slots) take(ctx context.Context, closing <-chan struct{}, n int) (*turn, error) {
	if n > s.total {
		return nil, fmt.Errorf("%d readers are needed at once, the database is open with %d; open it with readers=%d or more: %w",
			n, s.total, n, driver.ErrUnsupported)
	}
	if err := ended(ctx, closing); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if len(s.waiting) == 0 && n <= s.free && s.mayBegin() {
		defer s.mu.Unlock()
		return s.begin(n), nil
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.grant() // sets the alarm
	s.mu.Unlock()
	return s.await(ctx, closing, w)
}

// mayBegin tells whether there is a turn. The caller holds mu.
func (s *slots) mayBegin() bool {
	if len(s.turns) >= s.abreast {
		now := time.Now()
		for len(s.turns) > 0 && now.Sub(s.turns[0].since) >= turnLength {
			s.turns = slices.Delete(s.turns, 0, 1)
		}
	}
	return len(s.turns) < s.abreast
}

// begin takes n slots and a turn. The caller holds mu.
func (s *slots) begin(n int) *turn {
	t := &turn{readers: n, since: time.Now()}
	s.free -= n
	s.turns = append(s.turns, t)
	return t
}

// end gives n slots of a turn back. The caller holds mu.
func (s *slots) end(t *turn, n int) {
	s.free += n
	if t.readers -= n; t.readers > 0 {
		return
	}
	if i := slices.Index(s.turns, t); i >= 0 {
		s.turns = slices.Delete(s.turns, i, i+1)
	}
}

func ended(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-closing:
		return driver.ErrClosed
	default:
		return ctx.Err()
	}
}

func (s *slots) await(ctx context.Context, closing <-chan struct{}, w *waiter) (*turn, error) {
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
			return w.turn, nil
		case <-step:
			s.stepBack(w)
			continue
		case <-closing:
			err = driver.ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.withdraw(w)
		return nil, err
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
		s.end(w.turn, w.n)
	}
	s.grant()
}

// grant serves the first waiters as far as slots and turns are free. The caller holds mu.
func (s *slots) grant() {
	for len(s.waiting) > 0 && s.waiting[0].n <= s.free {
		if !s.mayBegin() {
			s.setAlarm()
			return
		}
		w := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		w.turn = s.begin(w.n)
		close(w.granted)
	}
}

// setAlarm has grant called again when the oldest turn is over. The caller holds mu.
func (s *slots) setAlarm() {
	if s.armed {
		return
	}
	s.armed = true
	wait := turnLength - time.Since(s.turns[0].since)
	if s.alarm == nil {
		s.alarm = time.AfterFunc(wait, s.ring)
	} else {
		s.alarm.Reset(wait)
	}
}

// ring serves who waited for a turn to be over.
func (s *slots) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	s.grant()
}

// conn returns an idle connection for a slot that was taken or, when there is none, the seat that a new one gets.
func (s *slots) conn() (c *Conn, seat int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) > 0 {
		lowest := slices.MinFunc(s.idle, bySeat)
		s.idle = slices.DeleteFunc(s.idle, func(c *Conn) bool { return c == lowest })
		return lowest, lowest.seat
	}
	seat = slices.Index(s.seats, false)
	s.seats[seat] = true
	return nil, seat
}

func bySeat(a, b *Conn) int { return cmp.Compare(a.seat, b.seat) }

// vacate gives back the seat of a connection that is no more.
func (s *slots) vacate(seat int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seats[seat] = false
}

// drop abandons a connection, whose slot stays taken.
func (s *slots) drop(c *Conn) {
	c.abandon()
	s.vacate(c.seat)
}

// give gives a slot of a turn back, with its connection unless that is nil.
func (s *slots) give(t *turn, c *Conn) {
	if c != nil && c.broken {
		s.drop(c)
		c = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil {
		s.idle = append(s.idle, c)
	}
	s.end(t, 1)
	s.grant()
}
