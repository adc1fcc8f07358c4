package entity

import (
	"bytes"
	"fmt"
	"slices"
)

// Confirm checks that a block makes a changeset that History has rebuilt. It
// does not need the versions before the block, because an operation either
// replaces content or leaves it for the new version. With forgotten, the set
// may lack versions that later blocks ended, and only the present ones are
// compared. The block must be valid. The error describes the difference.
func (b *Block) Confirm(set Changeset, rules Rules, forgotten bool) error {
	if b.Hash != set.Hash && b.Hash != (Hash{}) && set.Hash != (Hash{}) {
		return fmt.Errorf("it has hash %s, the other one %s", b.Hash, set.Hash)
	}
	made, err := Fold(b, b.prior(set, forgotten), Rules{ExtendAdds: rules.ExtendAdds, Pruned: true, madeUp: true})
	if err != nil {
		return err
	}
	at := func(key Key) (int, bool) {
		return slices.BinarySearchFunc(made.Changes, key, func(c Change, key Key) int { return bytes.Compare(c.Key[:], key[:]) })
	}
	for i := range set.Changes {
		c := &set.Changes[i]
		j, found := at(c.Key)
		if !found {
			return fmt.Errorf("it does not change %s, which was changed there", c.Key)
		}
		m := made.Changes[j]
		if rules.ExtendAdds && m.New != nil && c.New != nil && b.onlyExtends(c.Key) {
			m.New.Expiration = c.New.Expiration // it counts from a lifetime that is unknown here
		}
		if !sameEntity(m.New, c.New) {
			return fmt.Errorf("it makes another version of %s", c.Key)
		}
	}
	if forgotten || len(made.Changes) == len(set.Changes) {
		return nil
	}
	for i := range made.Changes {
		if i == len(set.Changes) || set.Changes[i].Key != made.Changes[i].Key {
			return fmt.Errorf("it changes %s, which was not changed there", made.Changes[i].Key)
		}
	}
	return nil
}

// prior invents the versions before the block: a live entity is given the
// version that it has afterwards.
func (b *Block) prior(set Changeset, forgotten bool) map[Key]Prior {
	there := make(map[Key]*Change, len(set.Changes))
	for i := range set.Changes {
		there[set.Changes[i].Key] = &set.Changes[i]
	}
	prior := make(map[Key]Prior, len(b.Ops))
	for i := range b.Ops {
		key := b.Ops[i].Key
		if _, seen := prior[key]; seen {
			continue
		}
		c := there[key]
		live := c != nil && c.Old != nil
		// Fold leaves a version that is never visible if a key expired earlier
		// and was created and ended in this block.
		ranOut := c != nil && c.Old == nil && c.New != nil && c.New.Expiration <= b.Number && c.New.CreatedAtBlock() == b.Number
		if forgotten {
			live = b.Ops[i].Kind != Create && (b.Ops[i].Kind != Expire || !ranOut)
		}
		if !live {
			prior[key] = Prior{Expired: ranOut}
			continue
		}
		before := Entity{Key: key}
		if c != nil && c.New != nil {
			before = *c.New
		}
		if before.Expiration <= b.Number {
			before.Expiration = MaxBlock
		}
		prior[key] = Prior{Live: &before}
	}
	return prior
}

// onlyExtends reports whether, after all of the block's operations on a key,
// its lifetime still counts from the old one.
func (b *Block) onlyExtends(key Key) bool {
	return !slices.ContainsFunc(b.Ops, func(op Op) bool {
		return op.Key == key && (op.Kind == Create || op.Kind == Update)
	})
}

func sameEntity(a, b *Entity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(appendVersion(nil, a), appendVersion(nil, b))
}
