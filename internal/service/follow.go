package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// DefaultPoll is how often a service looks at the head of its store.
const DefaultPoll = 200 * time.Millisecond

// head is the last block that the service knows of.
type head struct {
	block  atomic.Uint64
	looked atomic.Int64 // when it was last compared with the store's, Unix nanoseconds
	moved  atomic.Int64 // when another came

	mu    sync.Mutex
	known store.BlockHeader
}

// move sets the head. When the head is a different one it calls moved, and a
// concurrent caller with the same head waits until moved has returned. The
// block's number is not sufficient to compare, because after a rewind another
// block may have the same number.
func (h *head) move(to store.BlockHeader, moved func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now().UnixNano()
	h.looked.Store(now)
	if to != h.known {
		h.known = to
		h.block.Store(to.Number)
		h.moved.Store(now)
		moved()
	}
}

// age is how long ago the service looked.
func (h *head) age() time.Duration { return time.Since(time.Unix(0, h.looked.Load())) }

// observe takes the store's head. When another process has moved it, no cached
// entity may be returned any more.
func (s *Service) observe(to store.BlockHeader) { s.head.move(to, s.cache.forget) }

// at opens a snapshot; keys are those that Get is about to read. Where others write, the head that it shows is observed
// before anything of it is given out: a later read, from the cache too, is never
// of an older one.
func (s *Service) at(ctx context.Context, block uint64, keys ...entity.Key) (*store.Snapshot, error) {
	snap, err := s.ents.At(ctx, block, keys...)
	if err != nil {
		return nil, err
	}
	s.lastRead.Store(time.Now().UnixNano())
	if s.reads {
		s.observe(snap.Head())
	}
	return snap, nil
}

// look compares the head with the store's. The committer of a service that writes
// looks too: others must not write, but if they do, the cache knows soon.
func (s *Service) look(ctx context.Context) {
	if !s.reads {
		// A writer does not wait long for a reader of the store that is free.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opts.Poll/10)
		defer cancel()
	}
	to, err := s.ents.Head(ctx)
	switch {
	case err == nil:
		s.observe(to)
	case ctx.Err() == nil:
		s.cache.forget() // the request gets the store's error
	}
}
