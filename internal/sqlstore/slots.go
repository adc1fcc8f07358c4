package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/varvedb/varve/store/driver"
)

// slots bounds how many readers are open and how many of them are at work.
//
// A caller acquires a slot for each reader, and one lease for all readers that
// it opens together. Both semaphores are first come, first served, because
// otherwise a busy process would starve some of its callers.
type slots struct {
	total  int                 // readers
	leases int                 // readers or groups of them at work
	open   *semaphore.Weighted // a unit for each reader
	atWork *semaphore.Weighted // a unit for each lease; nil: all readers may be at work

	mu    sync.Mutex
	seats []seat
}

// seat is the place of a reader's connection. The lowest free seat is used
// first, so that few connections serve most views and their caches stay warm.
type seat struct {
	taken bool
	conn  *Conn // kept between readers; nil when there is none yet
}

// lease lets readers that were opened together work, until all of them are
// closed or until leaseTime has passed.
//
// More readers at work than processors get no more done, because Go lets a
// goroutine run for 10 ms before all others get their 10 ms. The small reads
// that are interrupted then wait for every other reader. While readers wait for
// a lease instead, each waits only for those before it.
type lease struct {
	readers  int // not closed yet; guarded by slots.mu
	since    time.Time
	deadline *time.Timer // nil without a bound of readers at work
	release  func()      // gives the lease back, once
}

// leaseTime ends a lease whose readers are still open, because a caller may keep
// a reader for as long as it likes and open another one meanwhile. The reader
// goes on without a lease. The time is longer than most reads, and as short as
// the callers that wait can bear.
const leaseTime = 20 * time.Millisecond

// severalWait is how long a caller that wants several readers keeps its place in
// the queue before it goes to the end. Without this wait, callers that want one
// reader would take every slot that becomes free. Without an end of the wait, a
// caller that holds a reader and asks for another one could be queued behind the
// caller that waits for the held one, for ever.
const severalWait = 100 * time.Millisecond

// newSlots returns slots for a number of readers, of whom atWork may work at
// the same time.
func newSlots(readers, atWork int) *slots {
	s := &slots{
		total: readers, leases: atWork,
		open: semaphore.NewWeighted(int64(readers)), seats: make([]seat, readers),
	}
	if atWork < readers {
		s.atWork = semaphore.NewWeighted(int64(atWork))
	}
	return s
}

// take waits for n slots, and then for a lease.
func (s *slots) take(ctx context.Context, n int) (*lease, error) {
	if n > s.total {
		return nil, fmt.Errorf("%d readers are needed at once, the database is open with %d; "+
			"open it with readers=%d or more: %w", n, s.total, n, driver.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for n > 1 {
		// All n at once: two callers that each hold a part would wait for ever.
		wait, cancel := context.WithTimeout(ctx, severalWait)
		err := s.open.Acquire(wait, int64(n))
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if n == 1 {
		if err := s.open.Acquire(ctx, 1); err != nil {
			return nil, err
		}
	}
	l := &lease{readers: n}
	if s.atWork != nil {
		if err := s.atWork.Acquire(ctx, 1); err != nil {
			s.open.Release(int64(n))
			return nil, err
		}
		l.release = sync.OnceFunc(func() { s.atWork.Release(1) })
		l.deadline = time.AfterFunc(leaseTime, l.release)
	}
	l.since = time.Now()
	return l, nil
}

// seat takes the lowest free seat for a slot that was taken. Its connection is
// nil when there is none yet.
func (s *slots) seat() (n int, c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = slices.IndexFunc(s.seats, func(at seat) bool { return !at.taken })
	s.seats[n].taken = true
	return n, s.seats[n].conn
}

// free gives a seat back, with its connection unless that is nil or broken.
func (s *slots) free(n int, c *Conn) {
	c = dropBroken(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seats[n] = seat{conn: c}
}

// give gives back n slots of a lease, and the lease with the last of them.
func (s *slots) give(l *lease, n int) {
	s.mu.Lock()
	l.readers -= n
	last := l.readers == 0
	s.mu.Unlock()
	if last && l.deadline != nil {
		l.deadline.Stop()
		l.release()
	}
	s.open.Release(int64(n))
}
