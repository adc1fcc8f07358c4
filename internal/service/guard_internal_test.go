package service

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestRefusedByWhatFails: a write that an earlier one of its block forbids is made when
// that one does not come to be.
func TestRefusedByWhatFails(t *testing.T) {
	db, err := store.Open(context.Background(), "sqlite:"+filepath.Join(t.TempDir(), "varve.db")+"?durability=relaxed", nil)
	require.NoError(t, err)
	defer db.Close()
	s, err := New(context.Background(), db, Options{})
	require.NoError(t, err)
	s.Close() // this test makes its block
	group := make([]*write, 2)
	for i := range group {
		group[i] = newWrite(context.Background())
		group[i].op = entity.Op{Kind: entity.Create, Key: entity.Key{1}, BTL: 10}
	}
	group[0].op.StringAttributes = map[string]string{"$reserved": ""}
	group[1].when.NoneMatch = &Versions{Any: true}
	first, second := group[0], group[1]
	s.commit(group)
	<-first.done
	<-second.done
	require.ErrorIs(t, first.err, store.ErrInvalid)
	require.NoError(t, second.err)
	require.Equal(t, Written{Block: 1, Created: true, Expiration: 11}, second.written)
}
