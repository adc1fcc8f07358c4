package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// TestAgrees: two histories may be the same one when their digests are equal. The
// hash of a chain decides too where both know it, because blocks without changes
// have the digest of the block before. A history that was fed without hashes
// contradicts none.
func TestAgrees(t *testing.T) {
	none, a, b := entity.Hash{}, entity.Hash{1}, entity.Hash{2}
	for name, c := range map[string]struct {
		hash, other entity.Hash
		digest      byte
		number      uint64
		want        bool
	}{
		"neither has a hash":   {none, none, 1, 7, true},
		"the first has one":    {a, none, 1, 7, true},
		"the other has one":    {none, a, 1, 7, true},
		"the same hash":        {a, a, 1, 7, true},
		"another hash":         {a, b, 1, 7, false},
		"of another block":     {a, b, 1, 8, true},
		"another digest":       {none, none, 2, 7, false},
		"another, of one hash": {a, a, 2, 7, false},
	} {
		h := BlockHeader{Number: 7, Digest: entity.Digest{1}, Hash: c.hash}
		other := BlockHeader{Number: c.number, Digest: entity.Digest{c.digest}, Hash: c.other}
		require.Equal(t, c.want, h.agrees(other), name)
	}
}

// TestRecordOfAnotherBlock: what is recorded of a block is read as what it was, and
// is damage under another block's number.
func TestRecordOfAnotherBlock(t *testing.T) {
	h := BlockHeader{Number: 7, Digest: entity.Digest{1}, Hash: entity.Hash{2}, Time: 3}
	got, err := headFromRecord(7, h.record())
	require.NoError(t, err)
	require.Equal(t, h, got)
	_, err = headFromRecord(8, h.record())
	require.ErrorIs(t, err, ErrCorrupt)
}
