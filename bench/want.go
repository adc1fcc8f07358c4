package bench

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// hashSeed is for hashes that do not leave the process.
var hashSeed = maphash.MakeSeed()

// want is what an entity must be right after the operation that made its last
// version. Of the payload it keeps a hash only, so that many fit into memory.
type want struct {
	*store.Entity
	content uint64 // hash
	size    int    // of the payload, in bytes
	created bool   // by this operation; otherwise creator and sequence say nothing
}

// newWant returns what a Create or Update of a block makes.
func newWant(op *store.Op, block uint64) *want {
	return &want{made(op, block), maphash.Bytes(hashSeed, op.Content), len(op.Content), op.Kind == store.Create}
}

// made returns the entity that a Create or Update makes, without its payload.
func made(op *store.Op, block uint64) *store.Entity {
	return &store.Entity{
		Key: op.Key, Creator: op.Owner, Owner: op.Owner, ContentType: op.ContentType,
		StringAttributes: op.StringAttributes, NumericAttributes: op.NumericAttributes,
		Sequence:            entity.MakeSequence(block, op.TxIndex, op.OpIndex),
		LastModifiedAtBlock: block, Expiration: entity.AddBlocks(block, op.BTL),
	}
}

// check compares what Snapshot.Get returned. It is cheap beside the reading: workloads
// check every entity.
func (w *want) check(e *store.Entity, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	case err != nil:
		return err
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
