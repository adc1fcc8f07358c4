package dcseed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

func TestIDs(t *testing.T) {
	require.Equal(t, "node_07_000042", NodeRef(7, 42).ID())
	require.Equal(t, "wl_07_000123", WorkloadRef(7, 123).ID())
	require.Equal(t, "wl_21_500000", WorkloadRef(21, 500_000).ID())
	require.Equal(t, "dc_07", DCID(7))
	// printf node_07_000042 | sha256sum
	require.Equal(t, "0xbecb011c17f43654", NodeRef(7, 42).Key().String()[:18])
	require.NotEqual(t, Operator(1), Operator(2))
	require.NotEqual(t, Tenant(1), Tenant(2))
}

func TestAssignment(t *testing.T) {
	m := newModel(t, Config{DCs: 7})
	for w, node := range map[int]string{
		1: "node_07_000001", 42: "node_07_000042", 100_000: "node_07_100000",
		100_001: "node_07_000001", 500_000: "node_07_100000",
	} {
		require.Equal(t, node, m.Workload(7, w).AssignedNode, "workload %d", w)
	}
	perNode := make(map[int]int)
	for w := 1; w <= DefaultWorkloads; w++ {
		perNode[m.NodeOf(w)]++
	}
	require.Len(t, perNode, DefaultNodes)
	for node, n := range perNode {
		require.Equal(t, 5, n, "node %d", node)
	}
}

func TestForScale(t *testing.T) {
	for scale, want := range map[float64][3]int{ // data centres, nodes and workloads in each
		1: {2, 100_000, 500_000}, 2: {4, 100_000, 500_000}, 5: {11, 100_000, 500_000}, 10: {21, 100_000, 500_000},
		0.5: {1, 100_000, 500_000}, 0.25: {1, 50_000, 250_000}, 0.005: {1, 1_000, 5_000}, 1e-9: {1, 1, 5},
	} {
		cfg, err := ForScale(scale)
		require.NoError(t, err)
		cfg = newModel(t, cfg).Config()
		require.Equal(t, want, [3]int{cfg.DCs, cfg.NodesPerDC, cfg.WorkloadsPerDC}, "scale %v", scale)
	}
	for _, scale := range []float64{0, -1, 48, 1e300} {
		_, err := ForScale(scale)
		require.ErrorContains(t, err, "scale")
	}
}

func TestDefaults(t *testing.T) {
	m := newModel(t, Config{})
	require.Equal(t, Config{DCs: 1, NodesPerDC: 100_000, WorkloadsPerDC: 500_000, Payload: 10_000, FirstBlock: 1,
		PerBlock: 660, NodeUpdates: 60, WorkloadUpdates: 600}, m.Config())
	require.EqualValues(t, 600_000, m.Entities())
	require.EqualValues(t, 1+910, m.FirstLoadBlock(), "600,000 entities, 660 a block")

	none := newModel(t, Config{NodesPerDC: 3, WorkloadsPerDC: -1, Payload: -1, NodeUpdates: -1}).Config()
	require.Equal(t, [4]int{}, [4]int{none.WorkloadsPerDC, none.Payload, none.NodeUpdates, none.WorkloadUpdates})
}

func TestConfigErrors(t *testing.T) {
	for message, cfg := range map[string]Config{
		"100 data centres, want 1 to 99":    {DCs: 100},
		"-1 data centres":                   {DCs: -1},
		"1000000 nodes a data centre":       {NodesPerDC: 1_000_000},
		"1000000 workloads a data centre":   {WorkloadsPerDC: 1_000_000},
		"payload bytes":                     {Payload: MaxPayload + 1},
		"entities a block":                  {PerBlock: -1},
		"2000000 node updates":              {NodeUpdates: 2_000_000},
		"no workloads":                      {WorkloadsPerDC: -1, WorkloadUpdates: 5},
		"above the highest block number":    {FirstBlock: entity.MaxBlockNumber + 1},
		"the initial state ends at block 4": {FirstBlock: entity.MaxBlockNumber},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, message)
	}
}

// Attributes depend on seed, data centre and number, and on nothing else.
func TestAttributesArePure(t *testing.T) {
	a := newModel(t, Config{Seed: 5})
	b := newModel(t, Config{Seed: 5, DCs: 9, NodesPerDC: 77, WorkloadsPerDC: 100_000, PerBlock: 3, FirstBlock: 1 << 20})
	for n := 1; n <= 77; n++ {
		require.Equal(t, a.Node(1, n), b.Node(1, n))
	}
	other := newModel(t, Config{Seed: 6})
	same := 0
	for n := 1; n <= 1_000; n++ {
		if a.Node(1, n).PriceHour == other.Node(1, n).PriceHour {
			same++
		}
	}
	require.Less(t, same, 20, "two seeds must not agree on more than chance allows")
}

func TestEntityOfNode(t *testing.T) {
	m := newModel(t, Config{NodesPerDC: 10, Payload: 100})
	n := m.Node(1, 3)
	e, ok := m.EntityAt(NodeRef(1, 3), 1)
	require.True(t, ok)
	require.Equal(t, map[string]string{"type": "node", "dc_id": "dc_01", "node_id": "node_01_000003",
		"region": n.Region, "status": n.Status, "vm_type": n.VMType}, e.StringAttributes)
	require.Equal(t, map[string]uint64{"cpu_count": n.CPUCount, "ram_gb": n.RAMGB,
		"price_hour": n.PriceHour, "avail_hours": n.AvailHours}, e.NumericAttributes)
	require.Len(t, e.Content, 100)
	require.Equal(t, Operator(1), e.Owner)
	require.Equal(t, entity.MakeSequence(1, 0, 2), e.Sequence)

	w := m.Workload(1, 4)
	e, ok = m.EntityAt(WorkloadRef(1, 4), 1)
	require.True(t, ok)
	require.Equal(t, map[string]string{"type": "workload", "dc_id": "dc_01", "workload_id": "wl_01_000004",
		"status": w.Status, "assigned_node": "node_01_000004", "region": w.Region, "vm_type": w.VMType}, e.StringAttributes)
	require.Equal(t, map[string]uint64{"req_cpu": w.ReqCPU, "req_ram": w.ReqRAM, "max_hours": w.MaxHours}, e.NumericAttributes)
	require.Equal(t, w.Owner, e.Creator)
}
