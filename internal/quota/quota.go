// Package quota bounds the memory that requests hold together: bodies that are being received
// and answers that are being sent. A request that wants more than is left waits, and whoever
// has held memory for long while another request waits is cut off.
package quota

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// Free is how many bytes a hold has without being counted: small requests never wait.
	Free = 16 << 10

	// DefaultGrace is how long a request may hold memory that another one waits for.
	DefaultGrace = 2 * time.Second

	// DefaultWait is how long a request waits for memory.
	DefaultWait = 5 * time.Second
)

// ErrFull: other requests held the memory for as long as this one waited.
var ErrFull = errors.New("other requests hold the memory that this one needs; try again")

// Quota is what all requests may hold together. Its fields are set before it is used, and its
// methods may be called from several goroutines.
type Quota struct {
	Grace, Wait time.Duration

	size int64
	room *semaphore.Weighted
	used atomic.Int64

	mu   sync.Mutex
	held map[*Hold]struct{} // holds that wait for their clients
}

// New returns a quota of so many bytes.
func New(bytes int64) *Quota {
	return &Quota{Grace: DefaultGrace, Wait: DefaultWait, size: bytes, room: semaphore.NewWeighted(bytes), held: map[*Hold]struct{}{}}
}

// Hold returns what one request holds: nothing so far. To cut it off, cut is called, which may
// not wait; nil: it is not cut off. Of a nil Quota it is nil, which holds anything. A Hold is for one goroutine.
func (q *Quota) Hold(cut func()) *Hold {
	if q == nil {
		return nil
	}
	return &Hold{quota: q, cut: cut}
}

// Hold is what one request holds of a quota.
type Hold struct {
	quota *Quota
	cut   func()
	n     int64
	since time.Time // that it waits for its client; guarded by quota.mu
}

// need returns how many bytes there must be more to hold n. More than there are of all is all.
func (h *Hold) need(n int64) int64 {
	if h == nil || n <= Free {
		return 0
	}
	return max(min(n, h.quota.size)-h.n, 0)
}

// Try holds n bytes in all, if there are so many, and does not wait.
func (h *Hold) Try(n int64) bool {
	more := h.need(n) // of a nil Hold there is never more
	if more == 0 {
		return true
	}
	if !h.quota.room.TryAcquire(more) {
		return false
	}
	h.n += more
	h.quota.use(more)
	return true
}

// Take holds n bytes in all and waits for them. It fails with ErrFull, or with ctx's error.
func (h *Hold) Take(ctx context.Context, n int64) error {
	if h.Try(n) {
		return nil
	}
	q, more := h.quota, h.need(n)
	for end := time.Now().Add(q.Wait); ; {
		left := time.Until(end)
		if left <= 0 {
			return fmt.Errorf("%w (%d bytes)", ErrFull, n)
		}
		within, cancel := context.WithTimeout(ctx, min(left, q.cutOff()))
		err := q.room.Acquire(within, more)
		cancel()
		if err == nil {
			h.n += more
			q.use(more)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Shrink gives back all but n bytes.
func (h *Hold) Shrink(n int64) {
	if h == nil || h.n == 0 || n >= h.n {
		return
	}
	if n <= Free {
		n = 0
	}
	h.quota.room.Release(h.n - n)
	h.quota.use(n - h.n)
	h.n = n
}

// Await says that the request waits for its client from now on: it may be cut off.
func (h *Hold) Await() {
	if h == nil || h.n == 0 || h.cut == nil {
		return
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	h.since = time.Now()
	h.quota.held[h] = struct{}{}
}

// Work says that the request does not wait for its client any more.
func (h *Hold) Work() {
	if h == nil || h.n == 0 {
		return
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	delete(h.quota.held, h)
}

// Release gives all back. The Hold can be used again.
func (h *Hold) Release() {
	if h == nil || h.n == 0 {
		return
	}
	h.Work()
	h.quota.room.Release(h.n)
	h.quota.use(-h.n)
	h.n = 0
}

// collectFrom is the size of a request from which its memory is collected at
// its end. Go would let the heap grow to twice as much first, while the next
// request holds as much again.
const collectFrom = 8 << 20

// use notes that requests hold so many bytes more. While they hold a quarter of a quota together, the
// collector lets the heap grow by a tenth and not to twice as much, because what large requests leave
// behind would count as much as what they hold.
func (q *Quota) use(delta int64) {
	now, much := q.used.Add(delta), q.size/4
	switch before := now - delta; {
	case before < much && now >= much:
		collector.add(1)
	case before >= much && now < much:
		collector.add(-1)
	}
}

// collector is how Go collects garbage, which all quotas share.
var collector tightening

type tightening struct {
	mu    sync.Mutex
	full  int // quotas that are nearly used up
	usual int // the percentage while there is none
}

// tightPercent is that of debug.SetGCPercent meanwhile.
const tightPercent = 10

func (c *tightening) add(quotas int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.full
	c.full += quotas
	switch {
	case before == 0 && c.full == 1:
		c.usual = debug.SetGCPercent(tightPercent)
	case before == 1 && c.full == 0:
		debug.SetGCPercent(c.usual)
	}
}

// Done gives all back, when nothing refers any more to the memory that was held.
func (h *Hold) Done() {
	if h != nil && h.n >= collectFrom {
		runtime.GC()
	}
	h.Release()
}

// cutOff cuts off who has held memory longer than the grace, and returns after which time to
// look again.
func (q *Quota) cutOff() (again time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again = q.Grace
	for h := range q.held {
		if left := q.Grace - time.Since(h.since); left > 0 {
			again = min(again, left)
			continue
		}
		h.cut()
		delete(q.held, h)
	}
	return max(again, time.Millisecond)
}

// spare is what bytes.Buffer wants free before it reads on without growing.
const spare = bytes.MinRead

// Read reads all of a body into a buffer and holds what that takes. The body's length is known,
// or below zero: then the buffer grows with it.
func (h *Hold) Read(ctx context.Context, b *bytes.Buffer, body io.Reader, length int64) error {
	size := int64(Free)
	for {
		switch _, err := io.CopyN(b, body, size-spare-int64(b.Len())); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if size *= 2; length >= 0 {
			size = max(length+spare+1, int64(b.Len())+2*spare) // the one byte is for the end
		}
		h.Work()
		if err := h.Take(ctx, size); err != nil {
			return err
		}
		h.Await()
		b.Grow(int(size) - b.Len())
	}
}
