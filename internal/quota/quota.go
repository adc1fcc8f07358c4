// Package quota bounds the total memory of requests: bodies that are being
// received and answers that are being sent. A request that wants more than is
// left waits, and a request that holds memory for long while another one waits
// is cut off.
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
	// Free is how many bytes each request may use without counting, so that
	// small requests never wait.
	Free = 16 << 10

	// DefaultGrace is how long a request may hold memory that another one waits
	// for.
	DefaultGrace = 2 * time.Second

	// DefaultWait is how long a request waits for memory.
	DefaultWait = 5 * time.Second
)

// ErrFull: the request has waited for memory for the maximum time.
var ErrFull = errors.New("other requests hold the memory that this one needs; try again")

// Quota is a memory budget for all requests together. Its fields are set before
// it is used, and its methods may be called from several goroutines.
type Quota struct {
	Grace, Wait time.Duration

	size int64
	room *semaphore.Weighted
	used atomic.Int64

	mu   sync.Mutex
	held map[*Hold]struct{} // holds whose requests wait for their clients
}

// New returns a quota of a number of bytes.
func New(bytes int64) *Quota {
	return &Quota{Grace: DefaultGrace, Wait: DefaultWait, size: bytes, room: semaphore.NewWeighted(bytes), held: map[*Hold]struct{}{}}
}

// Hold returns the Hold of one request, which holds nothing yet. To cut the
// request off, cut is called, which must not block; with nil it is not cut off.
// A nil Quota returns a nil Hold, which is unlimited. A Hold is for one
// goroutine.
func (q *Quota) Hold(cut func()) *Hold {
	if q == nil {
		return nil
	}
	return &Hold{quota: q, cut: cut}
}

// Hold is the memory that one request holds of a quota.
type Hold struct {
	quota *Quota
	cut   func()
	n     int64
	since time.Time // when it began to wait for its client; guarded by quota.mu
}

// need returns how many more bytes are needed to hold n, which is limited to
// the whole quota.
func (h *Hold) need(n int64) int64 {
	if h == nil || n <= Free {
		return 0
	}
	return max(min(n, h.quota.size)-h.n, 0)
}

// Try sets the held memory to n bytes, if that much is free, without waiting.
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

// Take sets the held memory to n bytes and waits until that much is free. It
// fails with ErrFull, or with ctx's error.
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

// Shrink releases all but n bytes.
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

// Await marks the request as waiting for its client: from now on it may be cut
// off.
func (h *Hold) Await() {
	if h == nil || h.n == 0 || h.cut == nil {
		return
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	h.since = time.Now()
	h.quota.held[h] = struct{}{}
}

// Work marks the request as no longer waiting for its client.
func (h *Hold) Work() {
	if h == nil || h.n == 0 {
		return
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	delete(h.quota.held, h)
}

// Release releases all memory. The Hold can be used again.
func (h *Hold) Release() {
	if h == nil || h.n == 0 {
		return
	}
	h.Work()
	h.quota.room.Release(h.n)
	h.quota.use(-h.n)
	h.n = 0
}

// collectFrom is the size of a request after which garbage is collected.
// Otherwise the heap might first grow to twice that size, while the next
// request already holds as much.
const collectFrom = 8 << 20

// use records that requests hold delta more bytes. While they hold at least a
// quarter of a quota, the collector lets the heap grow by a tenth only and not
// to twice its size, because the garbage of large requests would take as much
// memory as the requests.
func (q *Quota) use(delta int64) {
	now, much := q.used.Add(delta), q.size/4
	switch before := now - delta; {
	case before < much && now >= much:
		collector.add(1)
	case before >= much && now < much:
		collector.add(-1)
	}
}

// collector controls Go's garbage collector for all quotas.
var collector tightening

type tightening struct {
	mu    sync.Mutex
	full  int // number of quotas that are nearly used up
	usual int // the percentage to restore afterwards
}

// tightPercent is the value for debug.SetGCPercent in that time.
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

// Done releases all memory. It is called when nothing refers to that memory any
// more.
func (h *Hold) Done() {
	if h != nil && h.n >= collectFrom {
		runtime.GC()
	}
	h.Release()
}

// cutOff cuts off requests that have held memory longer than the grace, and
// returns when to look again.
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

// minSpare is the free space that bytes.Buffer needs to read on without growing.
const minSpare = bytes.MinRead

// Read reads a whole body into a buffer and holds the memory for it. If length,
// the body's length, is below zero it is unknown, and the buffer grows with the
// body.
func (h *Hold) Read(ctx context.Context, b *bytes.Buffer, body io.Reader, length int64) error {
	size := int64(Free)
	for {
		switch _, err := io.CopyN(b, body, size-minSpare-int64(b.Len())); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if size *= 2; length >= 0 {
			size = max(length+minSpare+1, int64(b.Len())+2*minSpare) // the one byte is for the end
		}
		h.Work()
		if err := h.Take(ctx, size); err != nil {
			return err
		}
		h.Await()
		b.Grow(int(size) - b.Len())
	}
}
