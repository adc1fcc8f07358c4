package entity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// TestOperationsAtTheEnd: what follows a creation in the last transaction of a block has a place.
func TestOperationsAtTheEnd(t *testing.T) {
	made := &entity.Entity{Key: entity.Key{1}, Sequence: entity.MakeSequence(5, 65535, 3), LastModifiedAtBlock: 5, Expiration: 9}
	ended := &entity.Entity{Key: entity.Key{2}, Sequence: entity.MakeSequence(4, 0, 0), LastModifiedAtBlock: 4, Expiration: 9}
	set := entity.Changeset{Block: 5, Changes: []entity.Change{{Key: made.Key, New: made}, {Key: ended.Key, Old: ended}}}
	for b, err := range entity.Operations(func(yield func(entity.Changeset, error) bool) { yield(set, nil) }) {
		require.NoError(t, err)
		require.Len(t, b.Ops, 2)
		require.NoError(t, b.Validate())
	}
}
