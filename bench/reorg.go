package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Reorg is the worst case for a B-tree in the user's documents: rows are
// deleted, and rows with the same primary keys inserted, repeatedly and
// anywhere in the store. In a layout with history that is a chain
// reorganisation: a block that updates entities is applied, rewound, and
// replaced by another block with the same entities and attributes but other
// values. Without history an update alone deletes and inserts the rows.
type Reorg struct {
	Observe func(b *entity.Block) // if not nil, is called for each block that stays

	ents   *store.Entities
	x      *Expectation // of some entities, before the block that is replaced
	keys   []entity.Key
	random *random
}

// A reorg changes reorgEntities entities, about 500 rows, as in the user's
// documents. They are drawn from about reorgPool entities anywhere in the
// store, whose pages exceed a cache, and which live for reorgLife more blocks.
// New payloads have the size of the base profile's.
const (
	reorgEntities = 20
	reorgPool     = 4_000
	reorgLife     = 1 << 20
	reorgPayload  = 5 << 10
)

// NewReorg draws the entities; for that it generates the data set again.
func NewReorg(cp *Copy, seed uint64) (*Reorg, error) {
	x, err := cp.data.part(cp.Ready, reorgPool)
	if err != nil {
		return nil, fmt.Errorf("reorg: %w", err)
	}
	r := &Reorg{ents: cp.Entities, x: x, random: newRandom(seed)}
	for key, e := range x.live {
		if e.Expiration > x.head.Number+reorgLife {
			r.keys = append(r.keys, key)
		}
	}
	if len(r.keys) < reorgEntities {
		return nil, fmt.Errorf("reorg: %w: only %d entities live long enough; choose a larger scale", store.ErrInvalid, len(r.keys))
	}
	slices.SortFunc(r.keys, func(a, b entity.Key) int { return bytes.Compare(a[:], b[:]) })
	return r, nil
}

// part returns an expectation of about n entities, drawn evenly from all
// entities of a data set.
func (d Dataset) part(ready Ready, n float64) (*Expectation, error) {
	share := n / float64(ready.Counts.Versions)
	left := func(op entity.Op) bool { // choose by the end of the key, because neighbours in an index share the beginning
		return float64(binary.BigEndian.Uint64(op.Key[len(op.Key)-8:]))/(1<<64) > share
	}
	x := NewExpectation(true)
	for b, err := range d.blocks() {
		if err == nil {
			b.Ops = slices.DeleteFunc(b.Ops, left)
			err = x.Apply(&b)
		}
		if err != nil {
			return nil, err
		}
	}
	return x, x.setHead(ready)
}

// Run runs reorgs, and leaves the last block in place. It fails with
// ErrMismatch when a head, its digest, or an entity of the last block is wrong.
func (r *Reorg) Run(ctx context.Context, cfg pace.Config) (res Result, err error) {
	var b entity.Block
	res.Outcome, err = pace.Loop(ctx, cfg, func(ctx context.Context, s *pace.Step) (err error) {
		b, err = r.round(ctx, s, &res)
		return err
	})
	if err == nil {
		err = checkCreated(ctx, r.ents, b)
	}
	if err != nil {
		err = fmt.Errorf("reorg: %w", err)
	}
	return res, err
}

// round runs one reorg and returns the block that stays. It measures rewinding
// a block and committing its replacement; without history, only the commit.
func (r *Reorg) round(ctx context.Context, s *pace.Step, res *Result) (b entity.Block, err error) {
	round := uint64(s.N)
	r.random.at(updateStream, round, 0)
	keys := r.random.distinct(reorgEntities, len(r.keys))
	if r.ents.Temporal() { // remove the last round's block, and apply the block to replace
		if err := r.ents.Rewind(ctx, r.x.head.Number); err != nil {
			return b, err
		}
		b = r.block(keys, round, 0)
		applied, err := r.ents.Apply(ctx, b)
		if err == nil {
			err = r.follow(&b, applied.Head)
		}
		if err != nil {
			return b, err
		}
	}
	b = r.block(keys, round, 1)
	s.Begin()
	if r.ents.Temporal() {
		if err := r.ents.Rewind(ctx, r.x.head.Number); err != nil {
			return b, err
		}
	}
	applied, err := r.ents.Apply(ctx, b)
	s.Stop()
	if err == nil {
		err = r.follow(&b, applied.Head)
	}
	_, rows := Written(&b)
	res.Entities, res.Rows = res.Entities+uint64(len(b.Ops)), res.Rows+2*uint64(rows) // deleted and inserted
	if r.Observe != nil {
		r.Observe(&b)
	}
	return b, err
}

// block updates entities after the base. In each revision their attributes have
// the same names and other values.
func (r *Reorg) block(keys []int, round, revision uint64) entity.Block {
	b := entity.Block{Number: r.x.head.Number + 1, Ops: make([]entity.Op, len(keys))}
	r.random.at(reorgStream, round, revision)
	for i, n := range keys {
		e := r.x.live[r.keys[n]]
		op := entity.Op{
			Kind: entity.Update, OpIndex: uint32(i), Key: e.Key, BTL: entity.MaxBlock, Owner: e.Owner, ContentType: e.ContentType,
			Content: make([]byte, reorgPayload), StringAttributes: maps.Clone(e.StringAttributes), NumericAttributes: maps.Clone(e.NumericAttributes),
		}
		r.random.bytes(op.Content)
		for _, name := range slices.Sorted(maps.Keys(op.StringAttributes)) {
			op.StringAttributes[name] = values[2*r.random.IntN(valuePool/2)+int(revision)]
		}
		for _, name := range slices.Sorted(maps.Keys(op.NumericAttributes)) {
			op.NumericAttributes[name] = 2*r.random.Uint64N(numberLimit/2) + revision
		}
		b.Ops[i] = op
	}
	return b
}

// follow compares the head after a block with the digest computed from the
// base. Without history a block cannot be rewound, so it becomes the next base.
func (r *Reorg) follow(b *entity.Block, head store.BlockHeader) error {
	set, want, err := r.x.fold(b)
	if err == nil {
		err = sameHead(head, want)
	}
	if err != nil || r.ents.Temporal() {
		return err
	}
	for i := range set.Changes {
		set.Changes[i].New.Content = nil // nothing keeps it
	}
	r.x.take(set, want)
	return nil
}
