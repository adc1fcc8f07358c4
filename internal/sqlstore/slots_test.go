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

	"github.com/varvedb/varve/store/driver"
)

// queue is callers that come one after another, and the order in which they are served.
// It is used in a bubble of synctest, where time passes when all wait.
type queue struct {
	t      *testing.T
	slots  slots
	mu     sync.Mutex
	served []string
	turns  map[string]*turn
}

func newQueue(t *testing.T, n, abreast int) *queue {
	return &queue{t: t, slots: newSlots(n, abreast), turns: map[string]*turn{}}
}

// come asks for n slots and returns when who asks is served or waits. The function that it returns cancels.
func (q *queue) come(name string, n int) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		t, err := q.slots.take(ctx, nil, n)
		if err != nil {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.served, q.turns[name] = append(q.served, name), t
	}()
	synctest.Wait()
	return func() { cancel(); synctest.Wait() }
}

// leave closes the readers of somebody who was served.
func (q *queue) leave(name string) {
	q.mu.Lock()
	t := q.turns[name]
	q.mu.Unlock()
	require.NotNil(q.t, t, "%s is served", name)
	for range t.readers {
		q.slots.give(t, nil)
	}
	synctest.Wait()
}

func (q *queue) want(names ...string) {
	q.t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Equal(q.t, names, q.served)
}

// TestFirstComeFirstServed: turns are handed on in the order in which callers came.
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

// TestSlotsInOrder: so are slots, with turns for all.
func TestSlotsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, 2)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			q.come(name, 1)
		}
		time.Sleep(10 * turnLength)
		q.want("a", "b")
		q.leave("a")
		q.leave("b")
		q.leave("c")
		q.want("a", "b", "c", "d", "e")
	})
}

// TestTurnHandedOn: who is cancelled while he waits keeps nobody from his turn.
func TestTurnHandedOn(t *testing.T) {
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

// TestTurnHandedOnAtOnce: neither does who is cancelled as he is served.
func TestTurnHandedOnAtOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(2, 1)
			held, err := s.take(context.Background(), nil, 1)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				if served, err := s.take(ctx, nil, 1); err == nil {
					s.give(served, nil)
				}
			}()
			synctest.Wait()
			cancel()
			s.give(held, nil)
			synctest.Wait()
			require.Equal(t, 2, s.free)
			require.Empty(t, s.turns)
		})
	}
}

// TestTurnOver: a reader that stays open keeps nobody out for longer than its turn.
func TestTurnOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const later = turnLength / 4
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		q := newQueue(t, 5, 2)
		q.come("a", 1)
		pass(later)
		for _, name := range []string{"b", "c", "d", "e"} {
			q.come(name, 1)
		}
		pass(turnLength - later - 1)
		q.want("a", "b")
		pass(1)
		q.want("a", "b", "c")
		pass(later)
		q.want("a", "b", "c", "d")
		pass(turnLength - later)
		q.want("a", "b", "c", "d", "e")
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			q.leave(name)
		}
		q.come("f", 5)
		q.want("a", "b", "c", "d", "e", "f")
	})
}

// TestTurnOverUnnoticed: a turn that was over while nobody waited is no turn for who comes then.
func TestTurnOverUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 4, 1)
		q.come("a", 1)
		time.Sleep(turnLength)
		q.come("b", 1)
		q.want("a", "b")
		q.come("c", 1)
		q.leave("b")
		q.want("a", "b", "c")
	})
}

// TestNestedReaders: who holds a reader and asks for another gets it, with as many others as there are slots.
func TestNestedReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8, 1)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				outer, _ := s.take(context.Background(), nil, 1)
				inner, _ := s.take(context.Background(), nil, 1)
				s.give(inner, nil)
				s.give(outer, nil)
			})
		}
		callers.Wait()
		require.Equal(t, 8, s.free)
	})
}

// TestSeveralTogether: several readers are one turn, are taken together, and neither
// keep those behind from their turn for ever nor are passed over for ever.
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
		time.Sleep(slotsWait)
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

// TestCloseInQueue: the end of the database is nobody's turn.
func TestCloseInQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4, 1)
		closing := make(chan struct{})
		held, err := s.take(context.Background(), closing, 1)
		require.NoError(t, err)
		errs := make(chan error)
		go func() { _, err := s.take(context.Background(), closing, 1); errs <- err }()
		synctest.Wait()
		close(closing)
		require.ErrorIs(t, <-errs, driver.ErrClosed)
		s.give(held, nil)
		_, err = s.take(context.Background(), nil, 4)
		require.NoError(t, err)
	})
}

// TestSlotsInDisorder: whatever is taken, given back and cancelled at once, there are
// never more readers than slots, and nothing is lost.
func TestSlotsInDisorder(t *testing.T) {
	const total, abreast = 5, 2
	s := newSlots(total, abreast)
	var open atomic.Int64
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(c)))
			for range 300 {
				n := 1 + random.IntN(3)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(400))*time.Microsecond)
				held, err := s.take(ctx, nil, n)
				if err == nil {
					if open.Add(int64(n)) > total {
						t.Error("more readers than slots")
					}
					if random.IntN(200) == 0 {
						time.Sleep(turnLength)
					}
					open.Add(int64(-n))
					for range n {
						s.give(held, nil)
					}
				}
				cancel()
			}
		})
	}
	callers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, total, s.free)
	require.Empty(t, s.turns)
	require.Empty(t, s.waiting)
}
