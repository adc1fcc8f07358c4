package bench

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// ErrMismatch: a store has wrong contents, or gave a wrong answer. A
// measurement that ends with it has no result.
var ErrMismatch = mix.ErrMismatch

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
}

// Counts are the rows of a history in a layout that keeps every version and one
// row for each attribute, synthetic attributes included.
type Counts struct {
	Versions uint64 `json:"versions"` // each has one payload
	Strings  uint64 `json:"strings"`
	Numbers  uint64 `json:"numbers"`
}

// Rows returns the sum.
func (c Counts) Rows() uint64 { return c.Versions + c.Strings + c.Numbers }

func (c *Counts) add(e *entity.Entity) {
	c.Versions++
	c.Strings += uint64(len(e.StringAttributes) + syntheticStrings)
	c.Numbers += uint64(len(e.NumericAttributes) + syntheticNumbers)
}

// Expectation follows the blocks of a store and knows the store's contents
// after them. It is not safe for concurrent use.
type Expectation struct {
	whole  bool
	only   map[entity.Key]bool // with whole, only these entities are remembered whole; nil means all
	head   store.BlockHeader
	live   map[entity.Key]*entity.Entity
	counts Counts
	ended  bool // a version was ended, so counts are larger than the head's
}

// NewExpectation returns the expectation of an empty store. With whole it
// remembers whole entities, which ExtendBTL and ChangeOwner need. Without, it
// remembers only some hundred bytes an entity, enough for Create, Update and
// Delete.
func NewExpectation(whole bool) *Expectation {
	return &Expectation{whole: whole, head: store.BlockHeader{Empty: true}, live: map[entity.Key]*entity.Entity{}}
}

// Head returns the head that the store must have.
func (x *Expectation) Head() store.BlockHeader { return x.head }

// setHead takes over a recorded head, if the history was followed only in part.
func (x *Expectation) setHead(r Ready) error {
	x.head.Number, x.head.Empty = r.Head, r.Counts.Versions == 0
	if err := x.head.Digest.UnmarshalText([]byte(r.Digest)); err != nil {
		return mismatch("recorded: %v", err)
	}
	return nil
}

// Counts returns the rows of the history.
func (x *Expectation) Counts() Counts { return x.counts }

// Live returns how many entities are visible at the head.
func (x *Expectation) Live() uint64 {
	n := uint64(0)
	for _, e := range x.live {
		if e.Expiration > x.head.Number {
			n++
		}
	}
	return n
}

// Apply follows a block. It fails when the block does not fit what came before.
func (x *Expectation) Apply(b *entity.Block) error {
	set, head, err := x.fold(b)
	if err == nil {
		x.take(set, head)
	}
	return err
}

// fold returns the changes of a block, and the head after it.
func (x *Expectation) fold(b *entity.Block) (set entity.Changeset, head store.BlockHeader, err error) {
	prior := make(map[entity.Key]entity.Prior, len(b.Ops))
	for i := range b.Ops {
		op := &b.Ops[i]
		if !x.keeps(op.Key) && (op.Kind == entity.ExtendBTL || op.Kind == entity.ChangeOwner) {
			return set, head, b.OpError(i, fmt.Errorf("%w: an expectation without whole entities cannot follow %s", store.ErrUnsupported, op.Kind))
		}
		if e := x.live[op.Key]; e != nil && e.Expiration > b.Number {
			prior[op.Key] = entity.Prior{Live: e}
		} else if e != nil {
			prior[op.Key] = entity.Prior{Expired: true}
		}
	}
	set, err = entity.Fold(b, prior, entity.Rules{})
	return set, store.BlockHeader{Number: b.Number, Digest: x.head.Digest.Next(set), Hash: b.Hash, Time: b.Time}, err
}

func (x *Expectation) take(set entity.Changeset, head store.BlockHeader) {
	for i := range set.Changes {
		x.change(&set.Changes[i])
	}
	x.head = head
}

func (x *Expectation) change(c *entity.Change) {
	x.ended = x.ended || c.Old != nil
	if c.New == nil {
		delete(x.live, c.Key)
		return
	}
	x.counts.add(c.New)
	e := *c.New
	if !x.keeps(c.Key) {
		e.Content, e.StringAttributes, e.NumericAttributes = nil, nil, nil
	}
	x.live[c.Key] = &e
}

// keeps reports whether the entity of a key is remembered whole.
func (x *Expectation) keeps(key entity.Key) bool {
	return x.whole && (x.only == nil || x.only[key])
}

// Check compares a store with the expectation: head and digest, the number of
// visible entities, and, in layouts with one row for each attribute, the rows
// of the tables. It reads every table. It fails with ErrMismatch.
func (x *Expectation) Check(ctx context.Context, ents *store.Entities) error {
	head, err := ents.Head(ctx)
	if err == nil {
		err = sameHead(head, x.head)
	}
	if err != nil {
		return err
	}
	s, err := ents.Summary(ctx)
	if err != nil {
		return err
	}
	if live := x.Live(); s.Live != live {
		return mismatch("%d entities are visible at block %d, want %d", s.Live, s.Head, live)
	}
	if x.ended && !ents.Temporal() {
		return nil // it keeps fewer rows than the history has
	}
	want := map[string]uint64{
		"payloads": x.counts.Versions, "string_attributes": x.counts.Strings, "numeric_attributes": x.counts.Numbers,
	}
	for table, rows := range s.Tables {
		if n, known := want[table]; known && rows != n {
			return mismatch("table %s has %d rows, want %d", table, rows, n)
		}
	}
	return nil
}

func sameHead(head, want store.BlockHeader) error {
	if head != want {
		return mismatch("head is block %d with digest %s, want block %d with %s", head.Number, head.Digest, want.Number, want.Digest)
	}
	return nil
}

// hashSeed is for hashes that do not leave the process.
var hashSeed = maphash.MakeSeed()

// want is the expected state of an entity after the operation that made its
// last version. It keeps only a hash of the payload, so that many fit into
// memory.
type want struct {
	*entity.Entity
	content uint64 // hash
	size    int    // of the payload, in bytes
	created bool   // by this operation; otherwise creator and sequence are not known
}

// newWant returns the expected entity after a Create or Update.
func newWant(op *entity.Op, block uint64) *want {
	return &want{madeEntity(op, block), maphash.Bytes(hashSeed, op.Content), len(op.Content), op.Kind == entity.Create}
}

// madeEntity returns the entity that a Create or Update makes, without its
// payload.
func madeEntity(op *entity.Op, block uint64) *entity.Entity {
	return &entity.Entity{
		Key: op.Key, Creator: op.Owner, Owner: op.Owner, ContentType: op.ContentType,
		StringAttributes: op.StringAttributes, NumericAttributes: op.NumericAttributes,
		Sequence:            entity.MakeSequence(block, op.TxIndex, op.OpIndex),
		LastModifiedAtBlock: block, Expiration: entity.AddBlocks(block, op.BTL),
	}
}

// check compares an entity that was read, nil if none was found. It is cheap
// compared with the read, so workloads check every entity.
func (w *want) check(e *entity.Entity) error {
	if e == nil {
		return mismatch("entity %s is not there", w.Key)
	}
	same := e.Key == w.Key && e.Owner == w.Owner && e.LastModifiedAtBlock == w.LastModifiedAtBlock && e.Expiration == w.Expiration &&
		(!w.created || e.Sequence == w.Sequence && e.Creator == w.Creator) &&
		maps.Equal(e.StringAttributes, w.StringAttributes) && maps.Equal(e.NumericAttributes, w.NumericAttributes) &&
		e.ContentType == w.ContentType && maphash.Bytes(hashSeed, e.Content) == w.content
	if !same {
		got := *e
		got.Content = nil
		return mismatch("entity %s is %+v with a payload of %d bytes, want %+v with another of %d bytes", w.Key, got, len(e.Content), *w.Entity, w.size)
	}
	return nil
}
