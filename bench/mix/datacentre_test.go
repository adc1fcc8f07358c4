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
	percent := map[string]int{"nodes-in-dc": 25, "available-gpu-nodes": 20, "workloads-on-node": 20, "node-match": 20, "node-state": 15}
	for name, limit := range map[string]int{"all": 0, "limited": 7} {
		t.Run(name, func(t *testing.T) {
			m, held := centre(t, 30)
			r := mix.NewDataCentre(m, held.Head().Number, limit)
			require.Equal(t, mix.DataCentre, r.Name())
			head := func() uint64 { return held.Head().Number }
			s, from := r.Stream(mix.StreamOptions{Head: head}), random(3)
			drawn := map[string]int{}
			const n = 1500
			for i := range n {
				if i%100 == 99 {
					b, err := m.Block(head() + 1)
					require.NoError(t, err)
					require.NoError(t, r.Advance(&b))
					require.NoError(t, held.Apply(b))
				}
				op := s(from)
				drawn[op.Kind]++
				require.Equal(t, op.Kind == "node-state", op.Block != store.Head)
				requireChecked(t, r, held, op)
			}
			require.Len(t, drawn, len(percent))
			for kind, share := range percent {
				require.InDelta(t, n*share/100, drawn[kind], 0.05*n, kind)
			}
		})
	}
}
