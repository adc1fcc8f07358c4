package service

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/varvedb/varve/store/entity"
)

// stripes is the number of counters by which readers detect that a key was
// written meanwhile.
const stripes = 1 << 10

// entryBytes estimates the memory of an entry without its texts and payload.
const entryBytes = 400

// cache holds entities as of the head, with decrypted payloads, up to a number
// of bytes. A nil cache holds nothing.
//
// The committer updates it before it acknowledges a write. After a miss a
// reader reads from the store and offers the result. Counters ensure that the
// result is not kept if the key was written since the reader began, because the
// reader may have seen the older state.
type cache struct {
	entries *otter.Cache[entity.Key, *entity.Entity]
	metrics *Metrics
	epochs  [stripes]atomic.Uint64

	// forgetting makes forget wait for running offers: an offer that has
	// already checked the epoch could otherwise put back a dropped entry.
	forgetting sync.RWMutex
}

func newCache(bytes int64, m *Metrics) (*cache, error) {
	if bytes < 0 {
		return nil, nil
	}
	entries, err := otter.New(&otter.Options[entity.Key, *entity.Entity]{
		MaximumWeight: uint64(bytes),
		Weigher:       func(_ entity.Key, e *entity.Entity) uint32 { return weight(e) },
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &cache{entries: entries, metrics: m}, nil
}

// weight estimates the bytes of an entry.
func weight(e *entity.Entity) uint32 {
	n := entryBytes + len(e.Content) + len(e.ContentType)
	for name, value := range e.StringAttributes {
		n += 48 + len(name) + len(value)
	}
	for name := range e.NumericAttributes {
		n += 40 + len(name)
	}
	return uint32(min(n, 1<<31))
}

// get returns an entity, which may have expired.
func (c *cache) get(key entity.Key) (*entity.Entity, bool) {
	if c == nil {
		return nil, false
	}
	e, ok := c.entries.GetIfPresent(key)
	if ok {
		c.metrics.hits.Inc()
	} else {
		c.metrics.misses.Inc()
	}
	return e, ok
}

// peek is get for the committer, without counting a hit or miss.
func (c *cache) peek(key entity.Key) (*entity.Entity, bool) {
	if c == nil {
		return nil, false
	}
	return c.entries.GetIfPresent(key)
}

// epoch returns the counter of a key, which must be read before the store.
func (c *cache) epoch(key entity.Key) uint64 {
	if c == nil {
		return 0
	}
	return c.stripe(key).Load()
}

func (c *cache) stripe(key entity.Key) *atomic.Uint64 {
	h := binary.LittleEndian.Uint64(key[:]) ^ binary.LittleEndian.Uint64(key[24:])
	return &c.epochs[h*0x9e3779b97f4a7c15>>54]
}

// offer caches an entity that a reader has found, unless its key was written
// since the reader read the epoch. The check is made under the entry's lock,
// which publish also takes: either publish comes later and replaces the entry,
// or it came before and has changed the epoch.
func (c *cache) offer(e *entity.Entity, epoch uint64) {
	if c == nil {
		return
	}
	c.forgetting.RLock()
	defer c.forgetting.RUnlock()
	c.entries.Compute(e.Key, func(_ *entity.Entity, found bool) (*entity.Entity, otter.ComputeOp) {
		if found || c.stripe(e.Key).Load() != epoch {
			return nil, otter.CancelOp
		}
		return e, otter.WriteOp
	})
}

// publish caches a committed write before it is acknowledged: the entity after
// the write, or nil when it was deleted.
func (c *cache) publish(key entity.Key, e *entity.Entity) {
	if c == nil {
		return
	}
	c.stripe(key).Add(1)
	if e == nil {
		c.entries.Invalidate(key)
		return
	}
	c.entries.Set(key, e)
}

// forget drops everything, when the store may have changed in an unknown way.
func (c *cache) forget() {
	if c == nil {
		return
	}
	c.forgetting.Lock()
	defer c.forgetting.Unlock()
	for i := range c.epochs {
		c.epochs[i].Add(1)
	}
	c.entries.InvalidateAll()
}

func (c *cache) bytes() uint64 {
	if c == nil {
		return 0
	}
	return c.entries.WeightedSize()
}

func (c *cache) close() {
	if c != nil {
		c.entries.StopAllGoroutines()
	}
}
