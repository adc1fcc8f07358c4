// Package service serves a store to programs that do not link it: put, get,
// delete and query of entities, and the event store. Service is the core. The
// packages below it are its transports (rest, rpc), the encryption of payloads
// (seal) and the server that binds them to addresses (server).
//
// The service creates the blocks: writes that arrive while a block commits
// share the next one. It must be the only writer of its store, because it
// caches entities. On a database that is open for reading it follows another
// writer, and drops cached entities when the head moves.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Defaults of Options.
const (
	DefaultCacheBytes = 64 << 20
	DefaultMaxPayload = 4<<20 - envelope // gRPC's clients by default take messages of 4 MiB
	DefaultWork       = 30 * time.Second
	DefaultMaxGroup   = 1024
)

// envelope bounds the size of a message of an entity or event in addition to
// its payload.
const envelope = 64 << 10

// maxGroupBytes bounds the payloads of one block. A single write may exceed it.
const maxGroupBytes = 32 << 20

// Options configure a service. The zero value stores payloads unencrypted, with
// the defaults above.
type Options struct {
	// Keys encrypt the payloads; nil stores them unencrypted.
	Keys *seal.Keyring

	// CacheBytes bounds the memory of the entity cache; zero means
	// DefaultCacheBytes, and a negative value turns the cache off.
	CacheBytes int64

	// MaxPayload bounds the size of one payload in bytes. Everything else in an
	// entity or event may have another 64 KiB. Zero means DefaultMaxPayload.
	MaxPayload int

	// Work bounds how long the store may work for one query or read of events,
	// not counting the time that the client takes to receive the answer; zero
	// means DefaultWork.
	Work time.Duration

	// Window is how long a block waits for further writes after the first. With
	// zero it waits only for the previous block's commit.
	Window time.Duration

	// MaxGroup bounds the writes of one block; zero means DefaultMaxGroup.
	MaxGroup int

	// Owner is the owner of new entities whose writer names none.
	Owner entity.Address

	// Adopt allows writing to a store that was so far written by other means,
	// such as an import, which then cannot be continued.
	Adopt bool

	// Poll is the interval at which the service checks whether another process
	// has moved the head; zero means DefaultPoll. Entities returned by a
	// read-only service may be that old.
	Poll time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.Window < 0 || o.Poll < 0 || o.MaxGroup < 0 || o.MaxGroup > 1<<16 || o.MaxPayload < 0 || o.Work < 0 {
		return o, fmt.Errorf("%w: an option below zero, or groups above %d: window %s, group of %d, payload of %d bytes", store.ErrInvalid, 1<<16, o.Window, o.MaxGroup, o.MaxPayload)
	}
	o.CacheBytes = cmp.Or(o.CacheBytes, DefaultCacheBytes)
	o.MaxPayload = cmp.Or(o.MaxPayload, DefaultMaxPayload)
	o.Work = cmp.Or(o.Work, DefaultWork)
	o.MaxGroup = cmp.Or(o.MaxGroup, DefaultMaxGroup)
	o.Poll = cmp.Or(o.Poll, DefaultPoll)
	return o, nil
}

// Service is the core that the transports share. Its methods may be called from several goroutines.
type Service struct {
	opts    Options
	metrics *Metrics
	db      *store.DB
	ents    *store.Entities
	events  *store.Events // nil when there are none
	reads   bool          // it only reads: other processes write
	cache   *cache
	head    head
	keys    atomic.Pointer[seal.Keyring] // nil: payloads are as they are

	lastRead    atomic.Int64 // when the store was last read, Unix nanoseconds
	subscribers sync.Map     // of *subscriber

	queue        chan *write
	recentWrites int                // largest number of writes in a recent block; for the committer only
	lease        driver.Lease       // nil if the engine has none; for the committer only
	leaseError   error              // why the lease was lost
	leased       bool               // a lease was taken at the start
	stop         context.CancelFunc // cancels a running read of the head
	done         chan struct{}      // closed when the committer has ended

	mu     sync.RWMutex // held for reading while a write is queued
	closed bool
}

// New returns a service over an open database, and creates its entity store and
// event store if there are none. On a read-only database it creates nothing,
// refuses writes and follows the head. It fails with store.ErrLocked when
// another service writes to the store, with store.ErrHistory when the store was
// written by other means, and with seal.ErrUnknownKey or seal.ErrNotSealed when
// the keys cannot open the newest payload. The caller closes the service, and
// then the database.
func New(ctx context.Context, db *store.DB, opts Options) (*Service, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	s := &Service{opts: opts, metrics: newMetrics(), db: db, reads: db.ReadOnly(), queue: make(chan *write, opts.MaxGroup), done: make(chan struct{})}
	s.keys.Store(opts.Keys)
	if err := s.open(ctx); err != nil {
		s.release()
		return nil, fmt.Errorf("service: %w", err)
	}
	s.metrics.observe(s)
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go s.loop(ctx)
	return s, nil
}

// open does the work of New.
func (s *Service) open(ctx context.Context) (err error) {
	// A read-only service builds no deferred indexes, and does not need them.
	if s.ents, err = s.db.Entities(ctx, &store.EntityOptions{DeferIndexes: s.reads}); err != nil {
		return err
	}
	if !s.reads {
		if err := s.claim(ctx); err != nil {
			return err
		}
	}
	s.events, err = s.db.Events(ctx, nil)
	if err != nil && !(s.reads && errors.Is(err, store.ErrLayout)) {
		return err
	}
	if err := s.readHead(ctx); err != nil {
		return err
	}
	if err := s.checkKeys(ctx, s.opts.Keys); err != nil {
		return err
	}
	s.cache, err = newCache(s.opts.CacheBytes, s.metrics)
	return err
}

// checkKeys opens the newest payload and the newest event, so that a service
// with the wrong keys does not start. A forged payload is reported only to its
// reader.
func (s *Service) checkKeys(ctx context.Context, keys *seal.Keyring) (err error) {
	snap, err := s.ents.At(ctx, store.Head)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	e, err := newest(ctx, snap)
	if err != nil {
		return err
	}
	if e != nil {
		if _, err := unseal(keys, e.Key, e.Content); err != nil && !errors.Is(err, seal.ErrTampered) {
			return fmt.Errorf("the newest payload, of %s: %w", e.Key, err)
		}
	}
	return s.checkEventKeys(ctx, keys)
}

// newest returns the entity whose payload was written last; nil if there is
// none. It queries ranges of blocks below the head, doubling the range each
// time, and then halves the last one, because sorting by the block would read
// every entity of a large store.
func newest(ctx context.Context, snap *store.Snapshot) (found *entity.Entity, err error) {
	since := func(block uint64) (*entity.Entity, error) {
		expr, err := query.Parse(fmt.Sprintf("%s >= %d", entity.AttrLastModifiedAtBlock, block))
		if err != nil {
			return nil, err
		}
		for e, err := range snap.Query(ctx, expr, &store.QueryOptions{Limit: 1}) {
			return e, err
		}
		return nil, nil
	}
	low, last := snap.Number(), snap.Number()
	for step := uint64(1); ; step *= 2 {
		if found, err = since(low); err != nil || found != nil || low == 0 {
			break
		}
		last = low - 1
		low -= min(low, step)
	}
	for err == nil && found != nil && found.LastModifiedAtBlock < last {
		middle := last - (last-found.LastModifiedAtBlock)/2
		var later *entity.Entity
		if later, err = since(middle); later != nil {
			found = later
		} else {
			last = middle - 1
		}
	}
	return found, err
}

const (
	// readyTimeout bounds the readiness check of the store.
	readyTimeout = time.Second
	// readLately is for how long a successful read proves readiness, while the
	// store is too busy for one more reader.
	readLately = 5 * time.Second
)

// Ready returns nil if the service accepts requests, ErrClosing, or the reason
// why the store cannot be read or written.
func (s *Service) Ready(ctx context.Context) error {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return ErrClosing
	}
	if err := driver.Probe(ctx, s.db.Engine()); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	snap, err := s.at(within, store.Head)
	switch {
	case err == nil:
		return snap.Close()
	case within.Err() != nil && time.Since(time.Unix(0, s.lastRead.Load())) < readLately:
		return nil // the store was read lately, but is too busy for this check
	}
	return err
}

// ReadOnly reports whether the service only reads.
func (s *Service) ReadOnly() bool { return s.reads }

// Leased reports whether a lease keeps out a second writing service. Some
// engines have no lease.
func (s *Service) Leased() bool { return s.leased }

// Head returns the number of the last block.
func (s *Service) Head() uint64 { return s.head.block.Load() }

// Sealed reports whether payloads are encrypted.
func (s *Service) Sealed() bool { return s.keys.Load() != nil }

// SetKeys replaces the keys of a service that has keys. It fails, and changes
// nothing, when the new keys cannot open the newest payload.
func (s *Service) SetKeys(ctx context.Context, keys *seal.Keyring) error {
	if !s.Sealed() || keys == nil {
		return fmt.Errorf("%w: keys can be changed, but not added or removed while the service runs; restart it", store.ErrInvalid)
	}
	if err := s.checkKeys(ctx, keys); err != nil {
		return err
	}
	s.keys.Store(keys)
	return nil
}

// MaxMessage returns the maximum size, in bytes, of an entity or event as a
// gRPC message.
func (s *Service) MaxMessage() int { return s.opts.MaxPayload + envelope }

// Metrics returns the counters of the service.
func (s *Service) Metrics() *Metrics { return s.metrics }

// Close refuses further writes, commits the queued ones, and ends. A second
// Close has no effect.
func (s *Service) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		s.stop()
		close(s.queue)
	}
	<-s.done
	s.cache.close()
}

func (s *Service) readHead(ctx context.Context) error {
	to, err := s.ents.Head(ctx)
	if err == nil {
		s.observe(to)
	}
	return err
}
