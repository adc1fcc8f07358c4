package entity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// TestFoldAfterTheEnd: an extension by no blocks ends an entity in its block. What
// follows in the block finds none, and may make another one.
func TestFoldAfterTheEnd(t *testing.T) {
	key, owner := entity.Key{1}, entity.Address{1}
	live := &entity.Entity{Key: key, Owner: owner, Creator: owner, Expiration: 99}
	for kind, want := range map[entity.Kind]error{
		entity.Create:      nil,
		entity.Update:      entity.ErrNotFound,
		entity.ExtendBTL:   entity.ErrNotFound,
		entity.ChangeOwner: entity.ErrNotFound,
		entity.Delete:      entity.ErrNotFound,
		entity.Expire:      nil, // there is nothing left to do
	} {
		b := entity.Block{Number: 7, Ops: []entity.Op{
			{Kind: entity.ExtendBTL, Key: key},
			{Kind: kind, Key: key, OpIndex: 1, BTL: 5, Owner: owner},
		}}
		set, err := entity.Fold(&b, map[entity.Key]entity.Prior{key: {Live: live}}, entity.Rules{})
		require.ErrorIs(t, err, want, "%v", kind)
		if want != nil {
			continue
		}
		require.Len(t, set.Changes, 1)
		require.NotNil(t, set.Changes[0].New, "%v", kind)
		require.Equal(t, map[entity.Kind]uint64{entity.Create: 12, entity.Expire: 7}[kind], set.Changes[0].New.Expiration, "%v", kind)
	}
}
