package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// DefaultChainID is the id of the chain that Arkiv's SDKs call localhost.
const DefaultChainID = 1337

// Options configure a handler. The zero value is usable.
type Options struct {
	ChainID   uint64        // zero: DefaultChainID
	BlockTime time.Duration // from one block to the next; zero: 2s
	Wait      time.Duration // for a block that is ahead of the head; zero: 3s, below zero: none
	Poll      time.Duration // how often to look whether the head has moved; zero: 100ms
	Limits    Limits

	// Origins are the web origins that may call, such as "https://example.com";
	// "*" means any. None means only pages of the same host.
	Origins []string

	// Methods are the chain's own methods, by name. They come in addition to
	// the store's methods, or replace them.
	Methods map[string]Method

	// Logs returns the logs of a block as its chain has them, which are more
	// complete than a store's, or false if the chain does not have the block.
	// When Logs is nil or returns false, logs are made from the block's
	// changes. The logs must not be modified.
	Logs func(block store.BlockHeader) ([]*Log, bool)

	Log     *slog.Logger          // errors that clients do not get; nil drops them
	Access  *slog.Logger          // a line for each request; nil: none
	Metrics prometheus.Registerer // nil: no metrics
	Now     func() time.Time      // nil: time.Now
}

// Method answers calls of a method, in JSON. If its error has a method
// ErrorCode, like errors of go-ethereum's package rpc, clients receive it; any
// other error is reported as internal. The parameters are part of the request,
// so the method must not retain them.
type Method func(ctx context.Context, params []json.RawMessage) (result json.RawMessage, err error)

// Limits bound the requests of clients. A zero field means its default.
type Limits struct {
	Time          time.Duration // for a call or a batch; 10s
	Receive       time.Duration // for a message that has begun over WebSocket; 20s
	Send          time.Duration // for a client to take an answer; 20s
	Memory        int64         // bytes of all requests and answers at a time, and of all filters and subscriptions; 16 MiB
	Request       int64         // bytes of a request; 1 MiB
	Page          int64         // bytes of a page; 512 MiB, as Arkiv has it
	Part          int           // bytes of a page that are held at a time, if it is sent in parts; 2 MiB
	Answer        int           // bytes of any other answer; 32 MiB. Of a batch all together, and no more than Memory
	Batch         int           // calls; 1,000, as go-ethereum has it
	Results       int           // entities of a page by default; 200
	MaxResults    int           // entities of a page at most; 10,000
	Concurrent    int           // calls at a time; 1024
	Blocks        uint64        // of a range of logs; 10,000
	Logs          int           // of an answer; 10,000
	Filters       int           // installed; 1,000
	FilterIdle    time.Duration // after which a filter that is not polled is removed; 5m
	Sockets       int           // WebSocket connections; 1,000
	Subscriptions int           // of a connection; 32
	Following     int           // subscriptions of all connections; 1,024
}

// defaultLimits replace zero fields.
var defaultLimits = Limits{
	Time: 10 * time.Second, Receive: 20 * time.Second, Send: 20 * time.Second,
	Memory: 16 << 20, Request: 1 << 20, Page: 512 << 20, Part: 2 << 20, Answer: 32 << 20,
	Batch: 1000, Results: 200, MaxResults: 10_000, Concurrent: 1024, Blocks: 10_000, Logs: 10_000,
	Filters: 1000, FilterIdle: 5 * time.Minute, Sockets: 1000, Subscriptions: 32, Following: 1024,
}

// withDefaults replaces zero values, and refuses negative ones.
func (o Options) withDefaults() (Options, error) {
	limits, defaults := reflect.ValueOf(&o.Limits).Elem(), reflect.ValueOf(defaultLimits)
	for i := range limits.NumField() {
		limit := limits.Field(i)
		if limit.IsZero() {
			limit.Set(defaults.Field(i))
		}
		if o.Poll < 0 || limit.CanInt() && limit.Int() < 0 {
			return o, fmt.Errorf("%w: a limit below zero", store.ErrInvalid)
		}
	}
	o.Limits.Part = min(o.Limits.Part, o.Limits.Answer)
	o.ChainID = cmp.Or(o.ChainID, DefaultChainID)
	o.BlockTime = cmp.Or(o.BlockTime, 2*time.Second)
	o.Wait = cmp.Or(o.Wait, 3*time.Second)
	o.Poll = cmp.Or(o.Poll, 100*time.Millisecond)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// Handler answers Arkiv's JSON-RPC over a store, which may be written
// meanwhile, by this process or another.
type Handler struct {
	ents    *store.Entities
	opts    Options
	methods map[string]method
	metrics *metrics
	http    http.Handler
	places  chan struct{} // a place for each concurrent call
	memory  *quota.Quota  // of requests and answers

	followers *quota.Quota  // of filters and subscriptions, which outlive their requests
	following chan struct{} // one for each subscription

	heads    heads
	count    countCache
	recent   *otter.Cache[store.BlockHeader, []*Log]
	hashes   hashIndex
	filters  filters
	sockets  chan struct{} // one for each connection
	notified sync.Map      // of *atomic.Uint64: the next block of each subscription

	closing <-chan struct{} // closed when Close begins
	close   func()
}

// New returns a handler over a store. The store must stay open until the
// handler is closed.
func New(ctx context.Context, ents *store.Entities, o Options) (*Handler, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	l := o.Limits
	h := &Handler{ents: ents, opts: o, places: make(chan struct{}, l.Concurrent), sockets: make(chan struct{}, l.Sockets), hashes: hashIndex{make(chan struct{}, 1), map[uint64]span{}}, memory: quota.New(l.Memory)}
	h.followers, h.following = quota.New(l.Memory), make(chan struct{}, l.Following)
	h.filters.list, h.heads.moved = map[string]*installed{}, make(chan struct{})
	h.count.lock = make(chan struct{}, 1)
	h.methods = methods()
	for name, own := range o.Methods {
		h.methods[name] = timed(func(_ *Handler, ctx context.Context, c *call) error {
			result, err := own(ctx, c.params)
			c.out = append(c.out, result...)
			var coded interface{ ErrorCode() int }
			if errors.As(err, &coded) {
				return &failure{code: coded.ErrorCode(), message: err.Error(), cause: err}
			}
			return err
		})
	}
	if h.metrics, err = newMetrics(o.Metrics, h); err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	h.http = accesslog.Handler(http.HandlerFunc(h.serve), o.Access)
	if _, err := h.head(ctx); err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.closing = ctx.Done()
	h.recent = otter.Must(&otter.Options[store.BlockHeader, []*Log]{
		MaximumWeight: recentCount,
		Weigher:       func(_ store.BlockHeader, logs []*Log) uint32 { return uint32(1 + len(logs)) },
	})
	var watching sync.WaitGroup
	watching.Go(func() { h.watch(ctx) })
	h.close = sync.OnceFunc(func() {
		stop()
		for range cap(h.sockets) { // wait until all have ended, and keep new ones out
			h.sockets <- struct{}{}
		}
		watching.Wait()
		h.recent.StopAllGoroutines()
	})
	return h, nil
}

// ServeHTTP implements http.Handler: a POST is a request or a batch, and an
// upgrade opens a WebSocket connection. The path is ignored.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.http.ServeHTTP(w, r) }

// Close ends WebSocket connections, with their subscriptions, and background
// work. The server of the handler must stop sending requests before.
func (h *Handler) Close() error {
	h.close()
	return nil
}

// at opens a snapshot of a block, from which Get will read the entities of keys.
// It waits for a block above the head. After a failed wait it tries once more,
// because the block may have come before the wait began.
func (h *Handler) at(ctx context.Context, block uint64, keys ...entity.Key) (*store.Snapshot, error) {
	snap, err := h.ents.At(ctx, block, keys...)
	if !errors.Is(err, store.ErrBlockRange) {
		return snap, err
	}
	if err := h.reach(ctx, block); err != nil {
		return nil, err
	}
	return h.ents.At(ctx, block, keys...)
}

// reached opens a snapshot of the head if the head has reached a block.
func (h *Handler) reached(ctx context.Context, block uint64) (*store.Snapshot, error) {
	for {
		snap, err := h.ents.At(ctx, store.Head)
		if err != nil || snap.Head().Number >= block {
			return snap, err
		}
		err = errors.Join(snap.Close(), h.reach(ctx, block))
		if err != nil {
			return nil, err
		}
	}
}

// reach waits, up to a limit, until the head has reached a block.
func (h *Handler) reach(ctx context.Context, block uint64) error {
	head, err := h.head(ctx)
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, max(h.opts.Wait, 0))
	defer cancel()
	for head.Number < block {
		if head, err = h.heads.next(wait, head); err != nil && ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return fmt.Errorf("block %d is %w: the last one is %d", block, errAhead, head.Number)
		}
	}
	return nil
}
