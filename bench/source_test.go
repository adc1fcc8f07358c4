package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/store"
)

// TestMendozaSource: a data set is the first part of a history, and the rest follows it.
func TestMendozaSource(t *testing.T) {
	s, err := MendozaSource(0.001, 7, 60, 0.7)
	require.NoError(t, err)
	x := NewExpectation(true)
	for _, b := range append(collect(t, s.Blocks()), some(t, s.Rest(), 50)...) {
		require.NoError(t, x.Apply(&b))
	}
	for _, share := range []float64{0, -1, 1.1} {
		_, err := MendozaSource(0.001, 0, 0, share)
		require.ErrorIs(t, err, store.ErrInvalid)
	}
	_, err = MendozaSource(101, 0, 0, 1)
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestDataCentreSource(t *testing.T) {
	cfg := dcseed.Config{NodesPerDC: 20, Payload: 64, NodeUpdates: 3, WorkloadUpdates: 5, PerBlock: 30}
	m, err := dcseed.New(cfg)
	require.NoError(t, err)
	s := DataCentreSource(m)
	blocks := collect(t, s.Blocks())
	require.Equal(t, m.FirstLoadBlock()-1, blocks[len(blocks)-1].Number)
	require.Equal(t, m.FirstLoadBlock(), some(t, s.Rest(), 1)[0].Number)
}
