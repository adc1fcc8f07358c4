package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/varvedb/varve/store"
)

// heads is the last block that the handler knows of, for whoever waits for the next.
type heads struct {
	mu    sync.Mutex
	known store.BlockHead
	seen  time.Time // when it was first known
	moved chan struct{}
}

func (h *heads) init() { h.moved = make(chan struct{}) }

// observe is told of the store's head, and when.
func (h *heads) observe(head store.BlockHead, now time.Time) {
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
func (h *heads) last() (store.BlockHead, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known, h.seen
}

// next waits for another head than one.
func (h *heads) next(ctx context.Context, than store.BlockHead) (store.BlockHead, error) {
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
func (h *Handler) head(ctx context.Context) (store.BlockHead, error) {
	head, err := h.ents.Head(ctx)
	if err == nil {
		h.heads.observe(head, h.opts.Now())
	}
	return head, err
}

// watch looks at the head from time to time, since others write the store, and lets
// filters go that nobody asks any more.
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

// countCache holds the number of entities at a head, which clients like to ask for.
type countCache struct {
	turn  chan struct{} // one counts, and whoever waits for it gets the same
	mu    sync.Mutex
	head  store.BlockHead
	count uint64
	valid bool
}

func (c *countCache) get(head store.BlockHead) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count, c.valid && c.head == head
}

func (c *countCache) put(head store.BlockHead, count uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.count, c.valid = head, count, true
}

// countEntities returns how many entities are visible at the head. Who waits for a count
// holds no reader.
func (h *Handler) countEntities(ctx context.Context) (n uint64, err error) {
	head, err := h.head(ctx)
	if err != nil {
		return 0, err
	}
	if n, ok := h.count.get(head); ok {
		return n, nil
	}
	select {
	case h.count.turn <- struct{}{}:
		defer func() { <-h.count.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if n, ok := h.count.get(head); ok {
		return n, nil
	}
	snap, err := h.ents.At(ctx, store.Head)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	if n, err = snap.Count(ctx, nil); err == nil {
		h.count.put(snap.Head(), n)
	}
	return n, err
}
