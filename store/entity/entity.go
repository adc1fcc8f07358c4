// Package entity defines the terms of the entity store: keys, operations,
// blocks, the versions that blocks make, and the chained digest over them. It
// does no I/O and knows no engine, so that generators and readers of block
// feeds can use it without importing the store.
package entity

import (
	"encoding/hex"
	"fmt"
	"math"
)

// MaxBlock is the block of "for ever": an entity that expires there never
// expires. Arithmetic on blocks saturates at it.
const MaxBlock = math.MaxInt64

// Key identifies an entity.
type Key [32]byte

// String returns the key as 0x and 64 lower-case hex digits.
func (k Key) String() string { return "0x" + hex.EncodeToString(k[:]) }

// ParseKey reads 0x and 64 hex digits.
func ParseKey(s string) (k Key, err error) {
	return k, parseHex(k[:], s, "key")
}

// Address identifies an account.
type Address [20]byte

// String returns the address as 0x and 40 lower-case hex digits.
func (a Address) String() string { return "0x" + hex.EncodeToString(a[:]) }

// ParseAddress reads 0x and 40 hex digits.
func ParseAddress(s string) (a Address, err error) {
	return a, parseHex(a[:], s, "address")
}

func parseHex(dst []byte, s, what string) error {
	if len(s) != 2+2*len(dst) || s[:2] != "0x" {
		return fmt.Errorf("%s %q: want 0x and %d hex digits", what, s, 2*len(dst))
	}
	if _, err := hex.Decode(dst, []byte(s[2:])); err != nil {
		return fmt.Errorf("%s %q: %w", what, s, err)
	}
	return nil
}

// Hash is the hash of a block in its chain.
type Hash [32]byte

// String returns the hash as 0x and 64 lower-case hex digits.
func (h Hash) String() string { return "0x" + hex.EncodeToString(h[:]) }

// ParseHash reads 0x and 64 hex digits.
func ParseHash(s string) (h Hash, err error) {
	return h, parseHex(h[:], s, "hash")
}

// MarshalText implements encoding.TextMarshaler: as String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (h *Hash) UnmarshalText(text []byte) error { return parseHex(h[:], string(text), "hash") }

// Entity is one version of an entity: its state from the block
// LastModifiedAtBlock on. It is visible at block N when
// LastModifiedAtBlock ≤ N, N < Expiration and no later version has begun.
type Entity struct {
	Key         Key
	Creator     Address // owner at creation
	Owner       Address
	ContentType string
	Content     []byte

	// The user's attributes. A name may occur in both maps.
	StringAttributes  map[string]string
	NumericAttributes map[string]uint64

	Sequence            uint64 // of the creation; see MakeSequence
	LastModifiedAtBlock uint64 // the block that made this version
	Expiration          uint64 // the first block at which it is gone, unless changed before
}

// MakeSequence packs the place of an entity's creation into one number that
// orders entities by creation: block<<32 | tx<<16 | op.
func MakeSequence(block uint64, tx, op uint32) uint64 {
	return block<<32 | uint64(tx)<<16 | uint64(op)
}

// CreatedAtBlock returns the block of the creation.
func (e *Entity) CreatedAtBlock() uint64 { return e.Sequence >> 32 }

// TxIndex returns the transaction of the creation within its block.
func (e *Entity) TxIndex() uint64 { return e.Sequence >> 16 & math.MaxUint16 }

// OpIndex returns the operation of the creation within its transaction.
func (e *Entity) OpIndex() uint64 { return e.Sequence & math.MaxUint16 }

// The names of the synthetic attributes, which every entity has and which
// queries treat like the user's own.
const (
	AttrKey                 = "$key"
	AttrOwner               = "$owner"
	AttrCreator             = "$creator"
	AttrExpiration          = "$expiration"
	AttrCreatedAtBlock      = "$createdAtBlock"
	AttrLastModifiedAtBlock = "$lastModifiedAtBlock"
	AttrSequence            = "$sequence"
	AttrTxIndex             = "$txIndex"
	AttrOpIndex             = "$opIndex"
)

// SyntheticKind reports whether name is a synthetic attribute, and its type.
func SyntheticKind(name string) (kind AttributeKind, ok bool) {
	switch name {
	case AttrKey, AttrOwner, AttrCreator:
		return String, true
	case AttrExpiration, AttrCreatedAtBlock, AttrLastModifiedAtBlock,
		AttrSequence, AttrTxIndex, AttrOpIndex:
		return Numeric, true
	}
	return 0, false
}

// AttributeKind is the type of an attribute.
type AttributeKind uint8

// The attribute types.
const (
	String AttributeKind = iota + 1
	Numeric
)

// StringAttribute returns a string attribute of e, the user's or synthetic.
func (e *Entity) StringAttribute(name string) (string, bool) {
	switch name {
	case AttrKey:
		return e.Key.String(), true
	case AttrOwner:
		return e.Owner.String(), true
	case AttrCreator:
		return e.Creator.String(), true
	}
	v, ok := e.StringAttributes[name]
	return v, ok
}

// NumericAttribute returns a numeric attribute of e, the user's or synthetic.
func (e *Entity) NumericAttribute(name string) (uint64, bool) {
	switch name {
	case AttrExpiration:
		return e.Expiration, true
	case AttrCreatedAtBlock:
		return e.CreatedAtBlock(), true
	case AttrLastModifiedAtBlock:
		return e.LastModifiedAtBlock, true
	case AttrSequence:
		return e.Sequence, true
	case AttrTxIndex:
		return e.TxIndex(), true
	case AttrOpIndex:
		return e.OpIndex(), true
	}
	v, ok := e.NumericAttributes[name]
	return v, ok
}
