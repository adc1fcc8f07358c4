package mix_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/storetest/model"
)

func centre(t testing.TB, load uint64) (*dcseed.Model, *model.Model) {
	m, err := dcseed.New(dcseed.Config{DCs: 2, NodesPerDC: 40, Payload: 50, NodeUpdates: 3, WorkloadUpdates: 9, PerBlock: 50})
	require.NoError(t, err)
	held := &model.Model{}
	for b, err := range m.Blocks(1, m.FirstLoadBlock()+load-1) {
		require.NoError(t, err)
		require.NoError(t, held.Apply(b))
	}
	return m, held
}

func TestDataCentre(t *testing.T) {
	for name, o := range map[string]mix.DataCentreOptions{
		"all": {}, "limited": {Limit: 7}, "counted": {Count: true},
		"pending": {Weights: dcseed.Weights{dcseed.PendingWorkloads: 1, dcseed.NodesInDC: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			m, held := centre(t, 30)
			o.Head = held.Head().Block
			r := mix.NewDataCentre(m, o)
			require.Equal(t, mix.DataCentre, r.Name())
			head := func() uint64 { return held.Head().Block }
			s := r.Stream(mix.StreamOptions{Seed: 3, Head: head})
			drawn := map[string]int{}
			const n = 1500
			for i := range n {
				if i%100 == 99 {
					b, err := m.Block(head() + 1)
					require.NoError(t, err)
					require.NoError(t, r.Advance(&b))
					require.NoError(t, held.Apply(b))
				}
				op := s.Next()
				drawn[op.Kind]++
				require.Equal(t, op.Kind == "node-state", op.Block != store.Head)
				requireChecked(t, r, held, op)
			}
			require.Len(t, drawn, len(r.Kinds()))
			for _, share := range r.Kinds() {
				require.InDelta(t, n*share.Percent/100, drawn[share.Kind], 0.05*n, share.Kind)
			}
		})
	}
}

func TestDataCentreWithoutHistory(t *testing.T) {
	m, held := centre(t, 5)
	held.HeadOnly = true
	r := mix.NewDataCentre(m, mix.DataCentreOptions{Head: held.Head().Block})
	s := r.Stream(mix.StreamOptions{HeadOnly: true})
	current := 0
	for range 300 {
		op := s.Next()
		require.Equal(t, uint64(store.Head), op.Block)
		requireChecked(t, r, held, op)
		if op.Kind == "node-current" {
			current++
		}
	}
	require.InDelta(t, 45, current, 25)
}
