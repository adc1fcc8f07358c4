package entity

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Change is what one block does to one entity: it ends the version Old at the
// block, starts the version New there, or both. Not both are nil.
type Change struct {
	Key Key

	// Old is the version that was live, or nil.
	Old *Entity

	// New is the version that begins at the block, or nil when the entity
	// ended. When its expiration is not above the block, it is never visible.
	New *Entity

	// ContentKept reports that New has the content of Old (ExtendBTL,
	// ChangeOwner), so that a layout need not write it again.
	ContentKept bool
}

// Kinds returns the operations that lead from the old version to the new one,
// as far as the versions show: a Delete and a Create if the new version is of
// another creation, else an Update or an ExtendBTL, and a ChangeOwner. An
// Update that only changed the owner, or only the expiration, cannot be told
// from a ChangeOwner or ExtendBTL. Both versions must be whole.
func (c *Change) Kinds() (list []Kind) {
	before, after := c.Old, c.New
	created := after != nil && (before == nil || before.Sequence != after.Sequence)
	if before != nil && (after == nil || created) {
		list = append(list, Delete)
	}
	if created {
		list = append(list, Create)
	}
	if before == nil || after == nil || created {
		return list
	}
	given, moved := before.Owner != after.Owner, before.Expiration != after.Expiration
	switch {
	case !sameContent(before, after) || !given && !moved:
		list = append(list, Update)
	case moved:
		list = append(list, ExtendBTL)
	}
	if given {
		list = append(list, ChangeOwner)
	}
	return list
}

func sameContent(a, b *Entity) bool {
	return a.ContentType == b.ContentType && bytes.Equal(a.Content, b.Content) &&
		maps.Equal(a.StringAttributes, b.StringAttributes) && maps.Equal(a.NumericAttributes, b.NumericAttributes)
}

// Changeset is the net effect of one block, with changes ordered by key.
type Changeset struct {
	Block   uint64
	Changes []Change

	// Hash, Time and Horizon are the block's. The digest does not cover them.
	Hash    Hash
	Time    uint64
	Horizon uint64
}

// Prior is the stored state of a key before a block.
type Prior struct {
	// Live is the version that would be visible at the block without its
	// operations, or nil. Its content may be absent when no operation of the
	// block keeps it.
	Live *Entity

	// Expired reports that the last version (not a Trace) reached its
	// expiration by itself, so that there is no live version and an Expire has
	// no effect.
	Expired bool
}

// Rules are the points in which feeds differ. The zero value follows Arkiv's
// SQLite store.
type Rules struct {
	// ExtendAdds makes ExtendBTL add to the old expiration instead of counting
	// from the block, as Arkiv's later stores do.
	ExtendAdds bool

	// Pruned reports that expired versions may have been removed, so that an
	// Expire of an unknown key has no effect and is not an error.
	Pruned bool

	// madeUp reports that the owners before the block are not known.
	madeUp bool
}

// errNoOwner refuses an Update that would take away an entity's owner, because
// an Owner that was left out is the likelier cause: Arkiv's feeds always name
// the sender.
var errNoOwner = fmt.Errorf("%w: Owner is missing, and an update sets it; give the owner that the entity has, "+
	"or take it away by change_owner first", ErrInvalid)

// Fold applies a block's operations in order to the state before it and returns
// the net changes: only the state after the last operation on a key counts. It
// fails with an *OpError that wraps ErrNotFound, ErrExists or, where an Update
// lacks an owner, ErrInvalid. The block must be valid. New versions share
// memory with the block's operations.
func Fold(b *Block, prior map[Key]Prior, rules Rules) (Changeset, error) {
	states := make(map[Key]*state, len(b.Ops))
	for i := range b.Ops {
		op := &b.Ops[i]
		s := states[op.Key]
		if s == nil {
			p := prior[op.Key]
			s = &state{old: p.Live, now: p.Live, expired: p.Expired, ranOut: p.Expired, contentKept: true}
			states[op.Key] = s
		}
		if err := s.apply(b.Number, op, rules); err != nil {
			return Changeset{}, b.OpError(i, err)
		}
	}
	set := Changeset{
		Block: b.Number, Hash: b.Hash, Time: b.Time, Horizon: b.Horizon,
		Changes: make([]Change, 0, len(states)),
	}
	for key, s := range states {
		if c, changed := s.change(key, b.Number); changed {
			set.Changes = append(set.Changes, c)
		}
	}
	slices.SortFunc(set.Changes, func(a, b Change) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return set, nil
}

// state is the state of one key during a block.
type state struct {
	old         *Entity // before the block
	now         *Entity // after the operations so far; old itself while untouched
	expired     bool    // not live because the lifetime ran out
	ranOut      bool    // expired before the block
	gone        *Entity // the version that the last Delete or Expire ended
	contentKept bool    // now has old's content
}

func (s *state) live(block uint64) bool { return s.now != nil && s.now.Expiration > block }

func (s *state) apply(block uint64, op *Op, rules Rules) error {
	if op.Kind == Create {
		if s.live(block) {
			return ErrExists
		}
		s.now = &Entity{Key: op.Key, Creator: op.Owner, Sequence: MakeSequence(block, op.TxIndex, op.OpIndex)}
		s.replace(block, op)
		return nil
	}
	if op.Kind == Expire && !s.live(block) && (s.expired || s.now != nil || rules.Pruned) {
		return nil // it ran out by itself
	}
	if !s.live(block) {
		return ErrNotFound
	}
	switch op.Kind {
	case Update:
		if op.Owner == (Address{}) && s.now.Owner != op.Owner && !rules.madeUp {
			return errNoOwner
		}
		s.begin(block)
		s.replace(block, op)
	case ExtendBTL:
		from := block
		if rules.ExtendAdds {
			from = s.now.Expiration
		}
		s.begin(block)
		s.now.Expiration = AddBlocks(from, op.BTL)
	case ChangeOwner:
		s.begin(block)
		s.now.Owner = op.Owner
	case Delete, Expire:
		s.gone, s.now, s.expired, s.contentKept = s.now, nil, false, false
	}
	return nil
}

// begin makes s.now a version of this block that may be modified.
func (s *state) begin(block uint64) {
	next := *s.now
	next.LastModifiedAtBlock = block
	s.now = &next
}

// replace sets the fields that Create and Update share.
func (s *state) replace(block uint64, op *Op) {
	e := s.now
	e.Owner = op.Owner
	e.ContentType, e.Content = op.ContentType, op.Content
	e.StringAttributes, e.NumericAttributes = op.StringAttributes, op.NumericAttributes
	e.LastModifiedAtBlock = block
	e.Expiration = AddBlocks(block, op.BTL)
	s.contentKept = false
}

func (s *state) change(key Key, block uint64) (Change, bool) {
	switch {
	case s.now == nil && s.ranOut && s.gone != nil:
		return Change{Key: key, New: s.gone.trace(block)}, true
	case s.now == s.old:
		return Change{}, false
	}
	c := Change{Key: key, Old: s.old, New: s.now}
	c.ContentKept = s.contentKept && c.Old != nil && c.New != nil
	return c, true
}

// AttrEnded is the attribute of a version that is a Trace. No query can name it.
const AttrEnded = "$ended"

// trace returns the version that is kept of an entity which began and ended
// within a block, after an earlier entity with the same key had expired. The
// version is never visible. Without it, an Expire in a later block would be
// applied to the earlier entity.
func (e *Entity) trace(block uint64) *Entity {
	return &Entity{
		Key: e.Key, Creator: e.Creator, Owner: e.Owner, Sequence: e.Sequence, LastModifiedAtBlock: block, Expiration: block,
		NumericAttributes: map[string]uint64{AttrEnded: 1},
	}
}

// Trace reports whether a version was never visible, because its entity was
// created and ended in the same block.
func (e *Entity) Trace() bool { return e.NumericAttributes[AttrEnded] != 0 }

// AddBlocks returns block + n, at most MaxBlock.
func AddBlocks(block, n uint64) uint64 {
	if n > MaxBlock || block > MaxBlock-n {
		return MaxBlock
	}
	return block + n
}

// Need is the part of a key's prior state that Fold needs in addition to
// attributes and metadata.
type Need uint8

// The parts.
const (
	NeedContent Need = 1 << iota // the payload: ExtendBTL and ChangeOwner keep it
	NeedEnd                      // Prior.Expired: an Expire may find no live version, a Delete one that the block has made
)

// Needs returns the keys of the block, each with the parts that Fold needs.
func (b *Block) Needs() map[Key]Need {
	needs := make(map[Key]Need, len(b.Ops))
	for i := range b.Ops {
		op := &b.Ops[i]
		need := needs[op.Key]
		switch op.Kind {
		case ExtendBTL, ChangeOwner:
			need |= NeedContent
		case Delete, Expire:
			need |= NeedEnd
		}
		needs[op.Key] = need
	}
	return needs
}
