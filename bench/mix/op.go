package mix

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// ErrMismatch: a store gave a wrong answer, so the measurement has no result.
// All workloads share this error.
var ErrMismatch = dcseed.ErrMismatch

// Reads is a mix of reads with known answers. Its methods may be called from
// several goroutines; each reader has a separate Stream.
type Reads interface {
	// Name returns the mix's name in results: "A", "B", "C", "dc".
	Name() string

	// Stream returns a new stream of operations.
	Stream(o StreamOptions) Stream

	// Check compares an answer with the right one at the answer's block. It
	// fails with ErrMismatch. It does not retain the answer.
	Check(op Op, a Answer) error

	// Advance follows a block before a store applies it. It does not retain the
	// block. It fails when the block does not fit those before. It is for one
	// goroutine at a time.
	Advance(b *entity.Block) error

	// Head returns the last block that was followed.
	Head() uint64
}

// StreamOptions configure a stream. The zero value draws from the head at the
// time of the call.
type StreamOptions struct {
	// Head, if given, is called for each operation and returns the block whose
	// entities are drawn from: the last committed block, if blocks are applied
	// meanwhile. Nil means the head at the time when the stream was made.
	Head func() uint64

	// HeadOnly replaces reads at a past block by reads at the head, for layouts
	// that keep no history; see HeadOnlyNote.
	HeadOnly bool
}

// HeadOnlyNote explains the effect of StreamOptions.HeadOnly to the readers of
// a record.
const HeadOnlyNote = "the layout keeps no history: the share of reads at a past block went to reads at the head"

// Stream draws the next operation. It depends only on the state of r and on the
// head: if each operation has its random numbers, it does not matter which
// worker runs it. It is not safe for concurrent use.
type Stream func(r *rand.Rand) Op

// Op is one read. Reader.Do runs it, and Reads.Check knows the answer.
type Op struct {
	Kind  string // the name in results
	Block uint64 // at which to read; store.Head for the current one

	// Get reads the whole entity of Key directly. Otherwise the Op is a query,
	// also if it has a Key and asks for one entity.
	Get bool
	Key entity.Key

	// A query with its order and limit, and the parts to fetch of each match.
	Expr  query.Expr
	Order []store.Order
	Limit int // 0: no limit
	Parts store.Parts

	ask question     // of the mixes over the base profile
	dc  dcseed.Query // of the data centre
}

// Answer is a store's answer to an Op.
type Answer struct {
	Block  uint64         // that was read
	Entity *entity.Entity // of an Op with a Key; nil when it is not visible
	Keys   []entity.Key   // of other queries, in order; good until the reader's next Do
	Count  uint64         // entities found
}

// Reader runs operations on a store, each on a new snapshot, as a node does
// that answers requests. It is not safe for concurrent use: use one for each
// goroutine.
type Reader struct {
	ents *store.Entities
	held *store.Snapshot
	keys []entity.Key
}

// NewReader returns a reader. If held is not nil, all operations read that
// snapshot.
func NewReader(ents *store.Entities, held *store.Snapshot) *Reader {
	return &Reader{ents: ents, held: held}
}

// Do runs an operation and reads the answer to its end. It fails when the store
// does; "not visible" is an answer and no error.
func (r *Reader) Do(ctx context.Context, op Op) (a Answer, err error) {
	if r.held != nil {
		return r.ask(ctx, r.held, op)
	}
	var keys []entity.Key
	if op.Get {
		keys = append(keys, op.Key)
	}
	snap, err := r.ents.At(ctx, op.Block, keys...)
	if err != nil {
		return a, err
	}
	a, err = r.ask(ctx, snap, op)
	return a, errors.Join(err, snap.Close())
}

func (r *Reader) ask(ctx context.Context, snap *store.Snapshot, op Op) (a Answer, err error) {
	a.Block = snap.Number()
	if op.Get {
		a.Entity, err = snap.Get(ctx, op.Key)
		if errors.Is(err, store.ErrNotFound) {
			return a, nil
		}
		a.Count = 1
		return a, err
	}
	r.keys = r.keys[:0]
	opts := store.QueryOptions{Order: op.Order, Limit: op.Limit, Parts: op.Parts}
	for e, err := range snap.Query(ctx, op.Expr, &opts) {
		if err != nil {
			return a, err
		}
		r.keys = append(r.keys, e.Key)
		if op.Key != (entity.Key{}) {
			a.Entity = e
		}
	}
	a.Keys, a.Count = r.keys, uint64(len(r.keys))
	return a, nil
}
