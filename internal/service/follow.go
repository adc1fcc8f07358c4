package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// DefaultPoll is the interval at which a service reads the head of its store.
const DefaultPoll = 200 * time.Millisecond

// head is the last block known to the service.
type head struct {
	block    atomic.Uint64
	lastRead atomic.Int64 // when the store's head was last read, Unix nanoseconds
	lastMove atomic.Int64 // when the head last changed

	mu    sync.Mutex
	known store.BlockHeader
}

// move sets the head. If it has changed, move calls moved, and a concurrent
// caller with the same head waits until moved has returned. Comparing the
// block's number is not enough, because after a rewind another block may have
// the same number.
func (h *head) move(to store.BlockHeader, moved func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now().UnixNano()
	h.lastRead.Store(now)
	if to != h.known {
		h.known = to
		h.block.Store(to.Number)
		h.lastMove.Store(now)
		moved()
	}
}

// age is the time since the head was last read.
func (h *head) age() time.Duration { return time.Since(time.Unix(0, h.lastRead.Load())) }

// observe records the store's head. If another process has moved it, the cache
// is emptied.
func (s *Service) observe(to store.BlockHeader) { s.head.move(to, s.cache.forget) }

// at opens a snapshot, from which Get will read the entities of keys. If other
// processes write, its head is observed before anything of it is returned, so
// that a later read, even from the cache, never returns an older state.
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

// refreshHead reads the store's head. The committer of a writing service does
// so too: other writers are forbidden, but if there are any, the cache is soon
// corrected.
func (s *Service) refreshHead(ctx context.Context) {
	if !s.reads {
		// A writer must not wait long for a free reader of the store.
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
