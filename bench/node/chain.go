package node

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/chain/chaintest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// chainID is the id of the test chain.
const chainID = 1337

// feed is a chain that grows at a rate, and the node that follows it. Its
// blocks are generated before they are due, so that generating takes no
// processor time from the node.
type feed struct {
	chain    *chaintest.Chain
	oracle   *mix.Oracle
	follower chain.Follower
	next     func() (entity.Block, error, bool)
	stop     []func()

	mu     sync.RWMutex
	blocks map[uint64]*fed
	last   uint64 // number of the last block made

	revealed, applied atomic.Uint64

	// The measured time.
	from, to atomic.Int64 // in nanoseconds since 1970; 0: not yet
	rows     atomic.Int64
	took     *latency.Recorder // used by one goroutine only
}

// fed is a block of the chain, with the data that clients' answers about it
// must contain.
type fed struct {
	due     time.Time // when it is to be revealed
	time    uint64
	rows    int
	visible uint64
}

// newFeed begins a chain after the head of a store and has the store follow its
// first block. The blocks of rest get new numbers. The caller closes it.
func newFeed(ctx context.Context, ents *store.Entities, oracle *mix.Oracle, rest bench.Stream) (_ *feed, err error) {
	head, err := ents.Head(ctx)
	if err != nil {
		return nil, err
	}
	f := &feed{chain: chaintest.After(chainID, head.Number), oracle: oracle, blocks: map[uint64]*fed{}, took: latency.NewRecorder()}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	var stop func()
	f.next, stop = iter.Pull2(rest)
	f.stop = append(f.stop, stop)
	client, end, err := serveChain(ctx, f.chain)
	if err != nil {
		return nil, err
	}
	f.stop = append(f.stop, func() { _ = end() })
	// Declare the store's history to be this chain's.
	if err := ents.SetChain(ctx, store.Chain{ID: chainID, Genesis: f.chain.Genesis()}); err != nil {
		return nil, err
	}
	f.follower = chain.Follower{Client: client, Store: ents, Adopt: true, Once: true, Progress: f.progress}
	more, err := f.nextBlock()
	if err == nil && !more {
		err = errors.New("no block comes after the store")
	}
	if err != nil {
		return nil, err
	}
	f.reveal(time.Now())
	err = f.follower.Run(ctx)
	f.follower.Once = false
	return f, err
}

func (f *feed) close() {
	for _, stop := range slices.Backward(f.stop) {
		stop()
	}
}

// give adds a block that is not revealed yet.
func (f *feed) give(ops []entity.Op) error {
	b, err := f.chain.Give(ops)
	if err != nil {
		return err
	}
	if err := f.oracle.Advance(&b); err != nil {
		return err
	}
	_, rows := bench.Written(&b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocks[b.Number], f.last = &fed{time: b.Time, rows: rows, visible: uint64(f.oracle.Visible())}, b.Number
	return nil
}

// block returns the record of a block; nil for a block before the chain.
func (f *feed) block(n uint64) *fed {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.blocks[n]
}

// nextBlock makes the next block of rest. It returns false at the end of rest.
func (f *feed) nextBlock() (bool, error) {
	b, err, ok := f.next()
	if !ok || err != nil {
		return false, err
	}
	return true, f.give(b.Ops)
}

// prepare makes blocks for a number of rows, up to maxPrepared.
func (f *feed) prepare(rows float64) (err error) {
	made, more := 0, true
	for err == nil && more && float64(made) < min(rows, maxPrepared) {
		if more, err = f.nextBlock(); more {
			made += f.block(f.last).rows
		}
	}
	return err
}

// maxPrepared is the maximum number of rows in blocks generated ahead, of some
// 256 bytes each.
const maxPrepared = 1 << 20

// reveal publishes the next block, which is due.
func (f *feed) reveal(due time.Time) {
	n := f.chain.Last() + 1
	f.block(n).due = due // before anybody asks
	f.revealed.Store(n)
	f.chain.Reveal(f.applied.Load())
}

// progress records the blocks that the node has applied.
func (f *feed) progress(s chain.Status) {
	now := time.Now()
	before := f.applied.Swap(s.Store)
	for n := before + 1; n <= s.Store; n++ {
		made := f.block(n)
		if made == nil {
			continue // a block before the chain
		}
		if from, to := f.from.Load(), f.to.Load(); from > 0 && now.UnixNano() >= from && (to == 0 || now.UnixNano() < to) {
			f.took.Record(now.Sub(made.due))
			f.rows.Add(int64(made.rows))
		}
	}
}

// run reveals blocks at a rate of rows a second, from start on, until the calls
// are over or ctx is done. It reports whether the blocks ran out before.
func (f *feed) run(ctx context.Context, over <-chan struct{}, start time.Time, rows float64) (short bool, err error) {
	for due := start; ; {
		select {
		case <-ctx.Done():
			return false, nil
		case <-over:
			return false, nil
		case <-time.After(time.Until(due)):
		}
		if f.revealed.Load() == f.last {
			if more, err := f.nextBlock(); err != nil || !more {
				return err == nil, err
			}
		}
		f.reveal(due)
		due = due.Add(time.Duration(float64(f.block(f.revealed.Load()).rows) / rows * float64(time.Second)))
	}
}

// caughtUp waits until the node has applied all revealed blocks. It fails when
// the node makes no progress.
func (f *feed) caughtUp(ctx context.Context) error {
	for at, since := f.applied.Load(), time.Now(); at < f.revealed.Load(); time.Sleep(10 * time.Millisecond) {
		if now := f.applied.Load(); now > at {
			at, since = now, time.Now()
		}
		if time.Since(since) > patience {
			return fmt.Errorf("the node stays at block %d of %d", at, f.revealed.Load())
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Chain is a chain that this process serves over JSON-RPC.
type Chain struct {
	Close func() error // ends the server

	expect *bench.Expectation // of a store that has followed the chain
	client *chain.Client
}

// NewChain makes a chain of blocks until their payloads reach a number of
// bytes. It holds all of them in memory and renumbers them. The caller closes
// it.
func NewChain(ctx context.Context, blocks bench.Stream, most int) (*Chain, error) {
	made, expect := chaintest.New(chainID, 1), bench.NewExpectation(true)
	err := expect.Apply(&made.Blocks()[0])
	for b, broken := range blocks {
		if err == nil {
			err = broken
		}
		if err != nil || most <= 0 {
			break
		}
		if b, err = made.Give(b.Ops); err == nil {
			err = expect.Apply(&b)
		}
		made.Reveal(0)
		for i := range b.Ops {
			most -= len(b.Ops[i].Content)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	c := &Chain{expect: expect}
	c.client, c.Close, err = serveChain(ctx, made)
	return c, err
}

// serveChain serves a chain and returns a client of it, and a function that
// closes both.
func serveChain(ctx context.Context, c *chaintest.Chain) (client *chain.Client, end func() error, err error) {
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(on) }() // until it is closed
	return &chain.Client{URL: "http://" + on.Addr().String(), Attempts: 3}, server.Close, nil
}

// Follow has an empty store follow the chain to its end. It returns the store's
// rows and how long that took. It fails with bench.ErrMismatch when the store's
// contents are wrong.
func (c *Chain) Follow(ctx context.Context, ents *store.Entities) (rows uint64, took time.Duration, err error) {
	f := chain.Follower{Client: c.client, Store: ents, Once: true}
	start := time.Now()
	err = f.Run(ctx)
	took = time.Since(start)
	if err == nil {
		err = c.expect.Check(ctx, ents)
	}
	if err != nil {
		err = fmt.Errorf("node: %w", err)
	}
	return c.expect.Counts().Rows(), took, err
}
