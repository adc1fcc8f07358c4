package dcseed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

func TestIDs(t *testing.T) {
	require.Equal(t, "node_07_000042", NodeRef(7, 42).String())
	require.Equal(t, "wl_07_000123", WorkloadRef(7, 123).String())
	require.Equal(t, "wl_21_500000", WorkloadRef(21, 500_000).String())
	require.Equal(t, "dc_07", DCID(7))
	// printf node_07_000042 | sha256sum
	require.Equal(t, "0xbecb011c17f43654", NodeRef(7, 42).Key().String()[:18])
	require.NotEqual(t, Operator(1), Operator(2))
	require.NotEqual(t, Tenant(1), Tenant(2))
}

func TestForScale(t *testing.T) {
	for scale, want := range map[float64][2]int{ // data centres, and nodes in each
		1: {2, 100_000}, 2: {4, 100_000}, 5: {11, 100_000}, 10: {21, 100_000}, 0.5: {1, 100_000}, 0.25: {1, 50_000}, 0.005: {1, 1_000}, 1e-9: {1, 1},
	} {
		cfg, err := ForScale(scale)
		require.NoError(t, err)
		cfg = newModel(t, cfg).Config()
		require.Equal(t, want, [2]int{cfg.DCs, cfg.NodesPerDC}, "scale %v", scale)
	}
	for _, scale := range []float64{0, -1, 48, 1e300} {
		_, err := ForScale(scale)
		require.ErrorContains(t, err, "scale")
	}
}

func TestDefaults(t *testing.T) {
	m := newModel(t, Config{})
	require.Equal(t, Config{DCs: 1, NodesPerDC: 100_000, Payload: 10_000, PerBlock: 660, NodeUpdates: 60, WorkloadUpdates: 600}, m.Config())
	require.EqualValues(t, 600_000, m.Entities())
	require.EqualValues(t, 1+910, m.FirstLoadBlock(), "600,000 entities, 660 a block")
}

func TestConfigErrors(t *testing.T) {
	for message, cfg := range map[string]Config{
		"100 data centres, want 1 to 99": {DCs: 100},
		"-1 data centres":                {DCs: -1},
		"200000 nodes a data centre":     {NodesPerDC: 200_000},
		"payload bytes":                  {Payload: MaxPayload + 1},
		"entities a block":               {PerBlock: -1},
		"2000000 node updates":           {NodeUpdates: 2_000_000},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, message)
	}
}

// Attributes depend on seed, data centre and number, and on nothing else.
func TestAttributesArePure(t *testing.T) {
	described := func(c Config, n int) (op entity.Op) {
		newModel(t, c).describe(&op, NodeRef(1, n), 0)
		return op
	}
	same := 0
	for n := 1; n <= 77; n++ {
		a := described(Config{Seed: 5}, n)
		require.Equal(t, a, described(Config{Seed: 5, DCs: 9, NodesPerDC: 77, PerBlock: 3}, n))
		if a.NumericAttributes["price_hour"] == described(Config{Seed: 6}, n).NumericAttributes["price_hour"] {
			same++
		}
	}
	require.Less(t, same, 10, "two seeds must not agree on more than chance allows")
}

// TestEntities: an entity has all attributes that its type has, and what does not vary.
func TestEntities(t *testing.T) {
	m := newModel(t, Config{NodesPerDC: 10, Payload: 100})
	e, ok := m.EntityAt(NodeRef(1, 3), 1)
	require.True(t, ok)
	require.Equal(t, [3]string{"node", "dc_01", "node_01_000003"}, [3]string{e.StringAttributes["type"], e.StringAttributes["dc_id"], e.StringAttributes["node_id"]})
	require.Len(t, e.StringAttributes, 6)
	require.Len(t, e.NumericAttributes, 4)
	require.Len(t, e.Content, 100)
	require.Equal(t, Operator(1), e.Owner)
	require.Equal(t, entity.MakeSequence(1, 0, 2), e.Sequence)
	for w, node := range map[int]string{1: "node_01_000001", 10: "node_01_000010", 11: "node_01_000001", 50: "node_01_000010"} {
		e, ok = m.EntityAt(WorkloadRef(1, w), 1)
		require.True(t, ok)
		require.Equal(t, node, e.StringAttributes["assigned_node"])
		require.Equal(t, WorkloadRef(1, w).String(), e.StringAttributes["workload_id"])
		require.Len(t, e.StringAttributes, 7)
		require.Len(t, e.NumericAttributes, 3)
		require.Equal(t, e.Owner, e.Creator)
	}
}
