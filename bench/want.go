package bench

import (
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
	key         store.Key
	owner       store.Address
	contentType string
	strings     map[string]string
	numbers     map[string]uint64
	content     uint64 // hash
	size        int    // of the payload, in bytes
	block       uint64
	expiration  uint64
	created     bool   // by this operation; otherwise sequence says nothing
	sequence    uint64 // of the creation
}

// newWant returns what a Create or Update of a block makes.
func newWant(op *store.Op, block uint64) *want {
	return &want{
		key: op.Key, owner: op.Owner, contentType: op.ContentType,
		strings: op.StringAttributes, numbers: op.NumericAttributes,
		content: maphash.Bytes(hashSeed, op.Content), size: len(op.Content),
		block: block, expiration: entity.AddBlocks(block, op.BTL),
		created: op.Kind == store.Create, sequence: entity.MakeSequence(block, op.TxIndex, op.OpIndex),
	}
}

// check compares an entity that a store returned. It is cheap beside the
// reading: workloads check every entity.
func (w *want) check(e *store.Entity) error {
	switch {
	case e.Key != w.key:
		return mismatch("entity %s, want %s", e.Key, w.key)
	case e.Owner != w.owner:
		return mismatch("entity %s has owner %s, want %s", w.key, e.Owner, w.owner)
	case e.LastModifiedAtBlock != w.block || e.Expiration != w.expiration:
		return mismatch("entity %s lives from block %d to %d, want %d to %d", w.key, e.LastModifiedAtBlock, e.Expiration, w.block, w.expiration)
	case w.created && (e.Sequence != w.sequence || e.Creator != w.owner):
		return mismatch("entity %s was created by %s as %d, want %s and %d", w.key, e.Creator, e.Sequence, w.owner, w.sequence)
	case !maps.Equal(e.StringAttributes, w.strings):
		return mismatch("entity %s has string attributes %q, want %q", w.key, e.StringAttributes, w.strings)
	case !maps.Equal(e.NumericAttributes, w.numbers):
		return mismatch("entity %s has numeric attributes %v, want %v", w.key, e.NumericAttributes, w.numbers)
	case e.ContentType != w.contentType:
		return mismatch("entity %s has content type %q, want %q", w.key, e.ContentType, w.contentType)
	case len(e.Content) != w.size || maphash.Bytes(hashSeed, e.Content) != w.content:
		return mismatch("entity %s has another payload, of %d bytes, want %d", w.key, len(e.Content), w.size)
	}
	return nil
}
