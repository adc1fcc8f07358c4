package entity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// operationsOf returns the operations of one changeset.
func operationsOf(t *testing.T, set entity.Changeset) (b entity.Block) {
	t.Helper()
	var err error
	for b, err = range entity.Operations(func(yield func(entity.Changeset, error) bool) { yield(set, nil) }) {
		require.NoError(t, err)
	}
	require.NoError(t, b.Validate())
	return b
}

// TestOperationsAtTheEnd: what follows a creation in the last transaction of a block has a place,
// and no create that of another.
func TestOperationsAtTheEnd(t *testing.T) {
	made := &entity.Entity{Key: entity.Key{1}, Sequence: entity.MakeSequence(5, 65535, 0), LastModifiedAtBlock: 5, Expiration: 9}
	early := &entity.Entity{Key: entity.Key{2}, Sequence: entity.MakeSequence(5, 0, 0), LastModifiedAtBlock: 5, Expiration: 9}
	ended := &entity.Entity{Key: entity.Key{3}, Sequence: entity.MakeSequence(4, 0, 0), LastModifiedAtBlock: 4, Expiration: 9}
	left := &entity.Entity{Key: entity.Key{4}, Sequence: entity.MakeSequence(4, 0, 1), LastModifiedAtBlock: 5, Expiration: 9}
	b := operationsOf(t, entity.Changeset{Block: 5, Changes: []entity.Change{
		{Key: made.Key, New: made}, {Key: early.Key, New: early}, {Key: ended.Key, Old: ended}, {Key: left.Key, New: left},
	}})
	require.Len(t, b.Ops, 4)
}

// TestOperationsOfOddStates: versions that no single operation may make any more, because it would
// lack its lifetime or its owner, are made by two.
func TestOperationsOfOddStates(t *testing.T) {
	owner := entity.Address{1}
	old := &entity.Entity{
		Key: entity.Key{3}, Owner: owner, Creator: owner, Sequence: entity.MakeSequence(2, 0, 0), LastModifiedAtBlock: 2, Expiration: 50,
	}
	free, over := *old, *old
	free.Owner, free.LastModifiedAtBlock, free.Content = entity.Address{}, 5, []byte("new")
	over.LastModifiedAtBlock, over.Expiration = 5, 5
	made := entity.Entity{
		Key: old.Key, Owner: owner, Creator: owner, Sequence: entity.MakeSequence(5, 1, 1), LastModifiedAtBlock: 5, Expiration: 5,
	}
	for name, c := range map[string]entity.Change{
		"created and over": {Key: old.Key, New: &made},
		"updated and over": {Key: old.Key, Old: old, New: &over},
		"without an owner": {Key: old.Key, Old: old, New: &free},
	} {
		b := operationsOf(t, entity.Changeset{Block: 5, Changes: []entity.Change{c}})
		set, err := entity.Fold(&b, map[entity.Key]entity.Prior{old.Key: {Live: c.Old}}, entity.Rules{})
		require.NoError(t, err, name)
		require.Equal(t, []entity.Change{c}, set.Changes, name)
		require.NoError(t, b.Confirm(set, entity.Rules{}, false), name)
	}
}
