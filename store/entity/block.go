package entity

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Kind is what an operation does.
type Kind uint8

// The operations, named as in Arkiv's feed.
const (
	Create      Kind = iota + 1 // make an entity that is not live
	Update                      // replace attributes, payload, owner and lifetime
	ExtendBTL                   // move the expiration
	ChangeOwner                 // give it to another account
	Delete                      // end it
	Expire                      // end it because its lifetime is over
)

var kindNames = [...]string{"", "create", "update", "extend_btl", "change_owner", "delete", "expire"}

// String returns the operation's name in Arkiv's feed.
func (k Kind) String() string {
	if int(k) < len(kindNames) && k > 0 {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Op is one operation of a block. Key is always given. Each kind uses the
// fields that are listed with it and ignores the others.
type Op struct {
	Kind    Kind
	TxIndex uint32 // transaction within the block, at most 65535
	OpIndex uint32 // operation within the transaction, at most 65535
	Key     Key

	// BTL is the blocks to live. Create and Update need at least 1; ExtendBTL
	// with 0 ends the entity at the block.
	BTL uint64

	// Owner is for Create, Update and ChangeOwner. If the entity has an owner,
	// an Update must give one, because only ChangeOwner may remove it.
	Owner Address

	// Create, Update.
	ContentType       string
	Content           []byte
	StringAttributes  map[string]string
	NumericAttributes map[string]uint64
}

// Block is a numbered, ordered list of operations. Numbers increase, perhaps
// with gaps, and a block may be empty.
type Block struct {
	Number uint64
	Ops    []Op

	// Hash is the chain's name for the block, and Time the time at which it was
	// made, in seconds since 1970; zero is unknown. A store keeps them next to
	// the digest. The digest does not cover them, because it only covers
	// changes: the same changes on another chain, or from a feed without
	// hashes, have the same digest.
	Hash Hash
	Time uint64

	// Horizon, if not zero, means that the history is incomplete below block
	// Horizon. A store that takes the block refuses to read earlier blocks. The
	// first block exported from a pruned store has it.
	Horizon uint64
}

// MaxBlockNumber is the highest number that a block may have: creation blocks
// must fit the upper half of a sequence.
const MaxBlockNumber = math.MaxUint32

// Validate checks everything about a block that does not depend on a store:
// number, indexes, kinds, lifetimes, attribute names and text. The error is an
// *OpError that wraps ErrInvalid and names block, transaction and operation.
func (b *Block) Validate() error {
	if b.Number > MaxBlockNumber {
		return fmt.Errorf("block %d: %w: above the highest block number %d", b.Number, ErrInvalid, uint64(MaxBlockNumber))
	}
	if b.Horizon > MaxBlockNumber {
		return fmt.Errorf("block %d: %w: its horizon %d is above the highest block number %d", b.Number, ErrInvalid, b.Horizon, uint64(MaxBlockNumber))
	}
	for i := range b.Ops {
		if err := b.Ops[i].validate(); err != nil {
			return b.OpError(i, fmt.Errorf("%w: %w", ErrInvalid, err))
		}
	}
	if i := b.repeatedSequence(); i >= 0 {
		return b.OpError(i, fmt.Errorf("%w: TxIndex and OpIndex are those of an earlier create of the block, "+
			"and both entities would have one sequence; count the creates of a transaction", ErrInvalid))
	}
	return nil
}

// repeatedSequence returns the index of the first Create whose sequence an
// earlier one of the block has, or -1. Only creates are compared: no other kind
// makes a sequence, and feeds may number each kind of operation separately.
func (b *Block) repeatedSequence() int {
	// Most feeds count upwards, and increasing sequences cannot repeat, so the
	// usual block needs no set.
	rising, next := true, uint64(0)
	for i := range b.Ops {
		if op := &b.Ops[i]; op.Kind == Create {
			sequence := MakeSequence(0, op.TxIndex, op.OpIndex)
			rising, next = rising && sequence >= next, sequence+1
		}
	}
	if rising {
		return -1
	}
	seen := make(map[uint64]bool, len(b.Ops))
	for i := range b.Ops {
		if op := &b.Ops[i]; op.Kind == Create {
			sequence := MakeSequence(0, op.TxIndex, op.OpIndex)
			if seen[sequence] {
				return i
			}
			seen[sequence] = true
		}
	}
	return -1
}

func (op *Op) validate() error {
	if op.Kind < Create || op.Kind > Expire {
		return fmt.Errorf("unknown operation %s", op.Kind)
	}
	if op.TxIndex > math.MaxUint16 || op.OpIndex > math.MaxUint16 {
		return fmt.Errorf("transaction and operation index must not pass %d", math.MaxUint16)
	}
	if op.Kind != Create && op.Kind != Update {
		return nil
	}
	if op.BTL == 0 {
		// To end an entity, the caller uses Delete, or ExtendBTL with 0.
		return fmt.Errorf("BTL is 0, with which the entity would be gone at once; "+
			"give the blocks to live, %d for ever", uint64(MaxBlock))
	}
	if !utf8.ValidString(op.ContentType) {
		return fmt.Errorf("content type %q is not UTF-8", op.ContentType)
	}
	for name, value := range op.StringAttributes {
		if err := validateName(name); err != nil {
			return err
		}
		if !utf8.ValidString(value) {
			return fmt.Errorf("value of string attribute %q is not UTF-8", name)
		}
	}
	for name := range op.NumericAttributes {
		if err := validateName(name); err != nil {
			return err
		}
	}
	return nil
}

func validateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("an attribute has no name")
	case name[0] == '$':
		return fmt.Errorf("attribute name %q: names that start with $ are reserved", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("attribute name %q is not UTF-8", name)
	}
	return nil
}

// TextWithNUL returns the index of the first operation with U+0000 in its
// content type, an attribute name or a string value, or -1. Engines that
// cannot store it need to know before anything is written.
func (b *Block) TextWithNUL() int {
	for i := range b.Ops {
		if b.Ops[i].textWithNUL() {
			return i
		}
	}
	return -1
}

func (op *Op) textWithNUL() bool {
	if strings.IndexByte(op.ContentType, 0) >= 0 {
		return true
	}
	for name, value := range op.StringAttributes {
		if strings.IndexByte(name, 0) >= 0 || strings.IndexByte(value, 0) >= 0 {
			return true
		}
	}
	for name := range op.NumericAttributes {
		if strings.IndexByte(name, 0) >= 0 {
			return true
		}
	}
	return false
}

// OpError wraps err with the place of operation i in the block.
func (b *Block) OpError(i int, err error) error {
	op := &b.Ops[i]
	return &OpError{Block: b.Number, TxIndex: op.TxIndex, OpIndex: op.OpIndex, Kind: op.Kind, Key: op.Key, Err: err}
}
