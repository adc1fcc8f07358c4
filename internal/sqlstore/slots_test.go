package sqlstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// queue has callers that come one after another, and the order in which they
// are served. It is used in a bubble of synctest, where time passes when all
// goroutines wait.
type queue struct {
	t      *testing.T
	slots  *slots
	mu     sync.Mutex
	served []string
	leases map[string]*lease
}

func newQueue(t *testing.T, n, atWork int) *queue {
	return &queue{t: t, slots: newSlots(n, atWork), leases: map[string]*lease{}}
}

// come asks for n slots and returns when the caller is served or waits. The
// function that it returns cancels the caller.
func (q *queue) come(name string, n int) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		l, err := q.slots.take(ctx, n)
		if err != nil {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.served, q.leases[name] = append(q.served, name), l
	}()
	synctest.Wait()
	return func() { cancel(); synctest.Wait() }
}

// leave closes the readers of a caller that was served.
func (q *queue) leave(name string) {
	q.mu.Lock()
	l := q.leases[name]
	q.mu.Unlock()
	require.NotNil(q.t, l, "%s is served", name)
	for range l.readers {
		q.slots.give(l, 1)
	}
	synctest.Wait()
}

func (q *queue) want(names ...string) {
	q.t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Equal(q.t, names, q.served)
}

// TestFirstComeFirstServed: leases are handed on in the order in which callers came.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 8, 2)
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			q.come(name, 1)
		}
		q.want("a", "b")
		q.leave("b")
		q.want("a", "b", "c")
		q.leave("c")
		q.leave("a")
		q.want("a", "b", "c", "d", "e")
		q.come("g", 1)
		q.leave("d")
		q.leave("e")
		q.want("a", "b", "c", "d", "e", "f", "g")
	})
}

// TestSlotsInOrder: so are slots, with leases for all.
func TestSlotsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, 2)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			q.come(name, 1)
		}
		time.Sleep(10 * leaseTime)
		q.want("a", "b")
		q.leave("a")
		q.leave("b")
		q.leave("c")
		q.want("a", "b", "c", "d", "e")
	})
}

// TestLeaseHandedOn: a caller that is cancelled while it waits blocks no other caller.
func TestLeaseHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 4, 1)
		q.come("a", 1)
		first := q.come("b", 1)
		q.come("c", 1)
		last := q.come("d", 1)
		first()
		last()
		q.leave("a")
		q.want("a", "c")
		q.leave("c")
		q.come("e", 4)
		q.want("a", "c", "e")
	})
}

// TestLeaseHandedOnAtOnce: neither does a caller that is cancelled as it is served.
func TestLeaseHandedOnAtOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(2, 1)
			held, err := s.take(context.Background(), 1)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				if served, err := s.take(ctx, 1); err == nil {
					s.give(served, 1)
				}
			}()
			synctest.Wait()
			cancel()
			s.give(held, 1)
			synctest.Wait()
			requireFree(t, s)
		})
	}
}

// TestLeaseEnds: a reader that stays open keeps others out for no longer than its lease.
func TestLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const later = leaseTime / 4
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		q := newQueue(t, 5, 2)
		q.come("a", 1)
		pass(later)
		for _, name := range []string{"b", "c", "d", "e"} {
			q.come(name, 1)
		}
		pass(leaseTime - later - 1)
		q.want("a", "b")
		pass(1)
		q.want("a", "b", "c")
		pass(later)
		q.want("a", "b", "c", "d")
		pass(leaseTime - later)
		q.want("a", "b", "c", "d", "e")
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			q.leave(name)
		}
		q.come("f", 5)
		q.want("a", "b", "c", "d", "e", "f")
	})
}

// TestLeaseEndedUnnoticed: a lease that ended while no caller waited is free for the next caller.
func TestLeaseEndedUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 4, 1)
		q.come("a", 1)
		time.Sleep(leaseTime)
		q.come("b", 1)
		q.want("a", "b")
		q.come("c", 1)
		q.leave("b")
		q.want("a", "b", "c")
	})
}

// TestNestedReaders: a caller that holds a reader gets another one, as long as there are slots.
func TestNestedReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8, 1)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				outer, _ := s.take(context.Background(), 1)
				inner, _ := s.take(context.Background(), 1)
				s.give(inner, 1)
				s.give(outer, 1)
			})
		}
		callers.Wait()
		requireFree(t, s)
	})
}

// TestSeveralTogether: several readers have one lease and are taken together. They neither
// block the callers behind them for ever nor are passed over for ever.
func TestSeveralTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 4, 2)
		q.come("three", 3)
		q.come("one", 1)
		q.want("three", "one")
		q.come("all", 4)
		q.come("late", 1)
		q.leave("one")
		q.want("three", "one")
		time.Sleep(severalWait)
		synctest.Wait()
		q.want("three", "one", "late")
		q.come("later", 1)
		q.leave("three")
		q.leave("late")
		q.want("three", "one", "late", "all")
		q.leave("all")
		q.want("three", "one", "late", "all", "later")
	})
}

// TestSlotsInDisorder: while callers take, give back and cancel, there are never more
// readers than slots, and no slot is lost.
func TestSlotsInDisorder(t *testing.T) {
	const total, atWork = 5, 2
	s := newSlots(total, atWork)
	var open atomic.Int64
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(c)))
			for range 300 {
				n := 1 + random.IntN(3)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(400))*time.Microsecond)
				held, err := s.take(ctx, n)
				if err == nil {
					if open.Add(int64(n)) > total {
						t.Error("more readers than slots")
					}
					if random.IntN(200) == 0 {
						time.Sleep(leaseTime)
					}
					open.Add(int64(-n))
					for range n {
						s.give(held, 1)
					}
				}
				cancel()
			}
		})
	}
	callers.Wait()
	requireFree(t, s)
}

// requireFree requires that all slots and leases were given back.
func requireFree(t *testing.T, s *slots) {
	t.Helper()
	require.True(t, s.open.TryAcquire(int64(s.total)), "all slots are free")
	require.True(t, s.atWork.TryAcquire(int64(s.leases)), "all leases are free")
	require.False(t, s.atWork.TryAcquire(1), "no lease was given back twice")
}
