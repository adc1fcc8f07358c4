package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Follower keeps a store at the head of a chain. It must be the only writer of
// the store.
type Follower struct {
	Client *Client
	Store  *store.Entities

	// Adopt accepts a store that was filled without hashes, for example from a
	// block tar: blocks whose hash the store does not know are assumed to be
	// the chain's.
	Adopt bool
	// Until, if not zero, is the block after which Run returns.
	Until uint64
	// Once makes Run return when it has reached the block that was the chain's
	// last one when it looked.
	Once bool
	// Interval is how often it asks for a new block; zero means a second.
	Interval time.Duration
	// Progress, if given, is called after each commit and rewind, by one goroutine.
	Progress func(Status)

	mu     sync.Mutex
	status Status
}

// Status describes how far a follower is.
type Status struct {
	Store   uint64 `json:"block"`      // last block of the store
	Chain   uint64 `json:"chain_head"` // last block of the chain, as far as is known
	Blocks  uint64 `json:"blocks"`     // applied since the start
	Changes uint64 `json:"changes"`    // entities changed by them
	Reorgs  uint64 `json:"reorganisations"`
	Rewound uint64 `json:"blocks_rewound"`
	Heard   int64  `json:"heard"` // when the execution client last answered, in Unix seconds
}

// Lag is how many blocks the store is behind.
func (s Status) Lag() uint64 { return s.Chain - min(s.Chain, s.Store) }

// The errors of following.
var (
	// ErrOtherChain: the store is of another chain than the execution client.
	ErrOtherChain = errors.New("another chain")
	// ErrTooDeep: the chain reorganised below the first block that the store
	// can be rewound to.
	ErrTooDeep = errors.New("the reorganisation is too deep")

	// errReorg: a block's parent is not the block before it.
	errReorg = errors.New("the chain was reorganised")
)

const (
	// behind is the lag from which on several blocks share a transaction.
	behind = 2 * largest
	// perCommit is the number of changes in such a transaction.
	perCommit = 2000
)

// Status returns the follower's progress. It may be called while Run runs.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *Follower) set(change func(*Status)) Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
	return f.status
}

// update updates the status after a write.
func (f *Follower) update(change func(*Status)) {
	s := f.set(change)
	if f.Progress != nil {
		f.Progress(s)
	}
}

// sawChainHead records an answer of the execution client.
func (f *Follower) sawChainHead(last uint64) {
	f.set(func(s *Status) { s.Chain, s.Heard = last, time.Now().Unix() })
}

// Run follows until ctx ends, Until is reached or, with Once, the chain's head
// is reached. It can be called again and continues from the store's head. It
// fails with ErrOtherChain, with ErrTooDeep, when the execution client fails
// permanently (Client.Attempts), and when a block does not fit the store, which
// then stays at the block before.
func (f *Follower) Run(ctx context.Context) error {
	if err := f.run(ctx); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	return nil
}

func (f *Follower) run(ctx context.Context) error {
	if err := f.checkChain(ctx); err != nil {
		return err
	}
	for {
		head, last, err := f.readHeads(ctx)
		if err != nil {
			return err
		}
		goal := last
		if f.Until > 0 {
			goal = min(last, f.Until)
		}
		if head.Empty || head.Number < goal {
			err = f.advance(ctx, head, goal)
		} else {
			err = f.confirm(ctx, head, last)
			if err == nil && (f.Once || f.Until > 0 && head.Number >= f.Until) {
				return nil
			}
			if err == nil {
				err = sleep(ctx, cmp.Or(f.Interval, time.Second))
			}
		}
		if errors.Is(err, errReorg) {
			err = f.rewind(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// checkChain checks that store and execution client are of the same chain.
func (f *Follower) checkChain(ctx context.Context) error {
	if f.Store.ExtendAdds() {
		return fmt.Errorf("%w: in this store extensions count from the old expiration, the chain's logs tell to which block; make a store without that", store.ErrUnsupported)
	}
	id, err := f.Client.ChainID(ctx)
	if err != nil {
		return err
	}
	genesis, ok, err := f.Client.Hash(ctx, 0)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: the execution client has no block 0, by which a chain is known", ErrOtherChain)
	}
	head, err := f.Store.Head(ctx)
	if err != nil {
		return err
	}
	_, known, err := f.Store.Chain(ctx)
	if err != nil {
		return err
	}
	if !known && !head.Empty {
		if err := f.checkAdoption(ctx, genesis); err != nil {
			return fmt.Errorf("%w: the store is at block %d, %w; follow into a new store, or adopt this one if it is of chain %d", ErrOtherChain, head.Number, err, id)
		}
	}
	err = f.Store.SetChain(ctx, store.Chain{ID: id, Genesis: genesis})
	if errors.Is(err, store.ErrHistory) {
		err = fmt.Errorf("%w: %w", ErrOtherChain, err)
	}
	return err
}

// checkAdoption returns an error unless a store that has blocks but names no
// chain may belong to this one: either its block 0 matches, as in a copy of a
// store that followed the chain, or the caller set Adopt.
func (f *Follower) checkAdoption(ctx context.Context, genesis entity.Hash) error {
	first, err := f.Store.HeaderAt(ctx, 0)
	switch {
	case err != nil || first.Hash == genesis:
		return err
	case first.Hash != (entity.Hash{}):
		return fmt.Errorf("its block 0 has hash %s, the chain's %s", first.Hash, genesis)
	case !f.Adopt:
		return errors.New("and does not record of which chain")
	}
	return nil
}

// readHeads reads both heads.
func (f *Follower) readHeads(ctx context.Context) (head store.BlockHeader, last uint64, err error) {
	if last, err = f.Client.BlockNumber(ctx); err != nil {
		return head, 0, err
	}
	if head, err = f.Store.Head(ctx); err != nil {
		return head, 0, err
	}
	f.sawChainHead(last)
	f.set(func(s *Status) { s.Store = head.Number })
	return head, last, nil
}

// confirm checks, when there is no new block, that the chain's last block is
// still the store's, because another block with the same number may have
// replaced it. It ignores a chain that is shorter than the store, because one
// of several execution clients behind an address may lag. If it was a
// reorganisation, the replacing blocks will show it.
func (f *Follower) confirm(ctx context.Context, head store.BlockHeader, last uint64) error {
	held, err := f.storeBlock(ctx, min(head.Number, last))
	if err != nil || held.Hash == (entity.Hash{}) {
		return err
	}
	hash, ok, err := f.Client.Hash(ctx, held.Number)
	if err == nil && ok && hash != held.Hash {
		err = errReorg
	}
	return err
}

// advance applies the blocks after the head, up to goal.
func (f *Follower) advance(ctx context.Context, head store.BlockHeader, goal uint64) error {
	if goal-head.Number < behind && !head.Empty {
		for b, err := range f.blocks(ctx, head, goal) {
			if err != nil {
				return err
			}
			applied, err := f.Store.Apply(ctx, b)
			if err != nil {
				return err
			}
			f.update(func(s *Status) {
				s.Store, s.Blocks, s.Changes = b.Number, s.Blocks+1, s.Changes+uint64(applied.Changes)
			})
		}
		return nil
	}
	before := f.Status()
	_, err := f.Store.Load(ctx, f.blocks(ctx, head, goal), &store.LoadOptions{Changes: perCommit, Progress: func(l store.Applied) {
		f.update(func(s *Status) {
			s.Store, s.Blocks, s.Changes = l.Head.Number, before.Blocks+uint64(l.Blocks), before.Changes+uint64(l.Changes)
		})
	}})
	return err
}

// blocks fetches the blocks after a head, one request ahead, and checks that
// each is the child of the one before. If one is not, it ends with errReorg.
func (f *Follower) blocks(ctx context.Context, head store.BlockHeader, goal uint64) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		batches := make(chan batch, 1)
		var fetching sync.WaitGroup
		fetching.Go(func() { f.fetch(ctx, head, goal, batches) })
		defer fetching.Wait()
		defer cancel()
		parent, known := head.Hash, head.Hash != (entity.Hash{})
		for batch := range batches {
			for _, b := range batch.blocks {
				if known && b.Parent != parent {
					yield(entity.Block{}, fmt.Errorf("block %d: %w", b.Number, errReorg))
					return
				}
				if !yield(b.Block, nil) {
					return
				}
				parent, known = b.Hash, true
			}
			if batch.err != nil {
				yield(entity.Block{}, batch.err)
				return
			}
		}
	}
}

type batch struct {
	blocks []Linked
	err    error
}

// fetch sends the blocks after a head to a channel in batches, and closes it.
func (f *Follower) fetch(ctx context.Context, head store.BlockHeader, goal uint64, to chan<- batch) {
	defer close(to)
	next := head.Number + 1
	if head.Empty {
		next = 0
	}
	for next <= goal {
		list, last, err := f.Client.Blocks(ctx, next, int(min(largest, goal-next+1)))
		if err == nil {
			f.sawChainHead(last)
		}
		select {
		case to <- batch{list, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		next += uint64(len(list))
	}
}

// rewind finds the last block that store and chain have in common, and rewinds
// the store to it.
func (f *Follower) rewind(ctx context.Context) error {
	head, last, err := f.readHeads(ctx)
	if err != nil {
		return err
	}
	common, err := f.common(ctx, min(head.Number, last))
	if err != nil {
		return err
	}
	err = f.Store.Rewind(ctx, common)
	if errors.Is(err, store.ErrBlockRange) || errors.Is(err, store.ErrUnsupported) {
		err = fmt.Errorf("%w: it goes back to block %d, the store is at %d: %w; follow into a new store", ErrTooDeep, common, head.Number, err)
	}
	if err == nil {
		f.update(func(s *Status) { s.Store, s.Reorgs, s.Rewound = common, s.Reorgs+1, s.Rewound+head.Number-common })
	}
	return err
}

// common returns the last block up to a number that store and chain both have.
// It steps back by growing steps, and then halves the range.
func (f *Follower) common(ctx context.Context, from uint64) (uint64, error) {
	differs, step := from+1, uint64(1) // the lowest block known to differ
	low := from
	for {
		same, err := f.same(ctx, low)
		if err != nil {
			return 0, err
		}
		if same {
			break
		}
		if low == 0 {
			return 0, fmt.Errorf("%w: it has another block 0 now", ErrOtherChain)
		}
		differs = low
		low -= min(step, low)
		step *= 2
	}
	for low+1 < differs {
		middle := low + (differs-low)/2
		same, err := f.same(ctx, middle)
		if err != nil {
			return 0, err
		}
		if same {
			low = middle
		} else {
			differs = middle
		}
	}
	return low, nil
}

// same reports whether the store has the chain's block with a number.
func (f *Follower) same(ctx context.Context, number uint64) (bool, error) {
	held, err := f.storeBlock(ctx, number)
	if err != nil || held.Hash == (entity.Hash{}) {
		return true, err // adopted
	}
	hash, ok, err := f.Client.Hash(ctx, number)
	return ok && hash == held.Hash, err
}

// storeBlock returns the store's block with a number; without a hash if it was
// adopted.
func (f *Follower) storeBlock(ctx context.Context, number uint64) (store.BlockHeader, error) {
	h, err := f.Store.HeaderAt(ctx, number)
	if err != nil {
		return h, err
	}
	if h.Empty || h.Number != number {
		h.Hash = entity.Hash{}
	}
	if h.Hash == (entity.Hash{}) && !f.Adopt {
		err = fmt.Errorf("%w: the store does not know the hash of block %d; adopt it if it is of this chain", ErrOtherChain, number)
	}
	return h, err
}
