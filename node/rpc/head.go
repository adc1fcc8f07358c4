package rpc

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/varvedb/varve/store"
)

// heads holds the last known head, and wakes the goroutines that wait for the
// next.
type heads struct {
	mu    sync.Mutex
	known store.BlockHeader
	seen  time.Time // when it was first known
	moved chan struct{}
}

// observe records the store's head and the time.
func (h *heads) observe(head store.BlockHeader, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if head == h.known && !h.seen.IsZero() {
		return
	}
	h.known, h.seen = head, now
	close(h.moved)
	h.moved = make(chan struct{})
}

// last returns the head and when it was first known.
func (h *heads) last() (store.BlockHeader, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known, h.seen
}

// next waits until the head differs from than.
func (h *heads) next(ctx context.Context, than store.BlockHeader) (store.BlockHeader, error) {
	for {
		h.mu.Lock()
		known, moved := h.known, h.moved
		h.mu.Unlock()
		if known != than {
			return known, nil
		}
		select {
		case <-ctx.Done():
			return known, ctx.Err()
		case <-moved:
		}
	}
}

// head reads the store's head.
func (h *Handler) head(ctx context.Context) (store.BlockHeader, error) {
	head, err := h.ents.Head(ctx)
	if err == nil {
		h.heads.observe(head, h.opts.Now())
	}
	return head, err
}

// watch polls the head, because another process may write the store, and
// removes filters that are no longer polled.
func (h *Handler) watch(ctx context.Context) {
	ticker := time.NewTicker(h.opts.Poll)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, err := h.head(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			h.opts.Log.Warn("the head cannot be read", "error", err)
		}
		failing = err != nil
		h.filters.expire(h.opts.Now().Add(-h.opts.Limits.FilterIdle))
	}
}

// countCache caches the number of entities at the head, because clients ask for
// it often.
type countCache struct {
	lock  chan struct{} // a lock of the fields below that can be awaited with a context
	head  store.BlockHeader
	count uint64
	valid bool
}

// getEntityCount serves arkiv_getEntityCount. Concurrent calls share one count;
// a call that waits for it holds no reader.
func (h *Handler) getEntityCount(ctx context.Context, call *call) (err error) {
	head, err := h.head(ctx)
	if err != nil {
		return err
	}
	c := &h.count
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !c.valid || c.head != head {
		snap, err := h.ents.At(ctx, store.Head)
		if err != nil {
			return err
		}
		defer snap.Close()
		n, err := snap.Count(ctx, nil)
		if err != nil {
			return err
		}
		c.head, c.count, c.valid = snap.Head(), n, true
	}
	call.out = fmt.Appendf(call.out, "%d", c.count)
	return nil
}
