package dcseed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/query"
)

func TestQueryText(t *testing.T) {
	m := newModel(t, Config{DCs: 7})
	for want, q := range map[string]Query{
		`dc_id = "dc_07" && type = "node"`:                                                m.NodesInDC(7, 1),
		`dc_id = "dc_07" && status = "available" && vm_type = "gpu"`:                      m.AvailableGPUNodes(7, 1),
		`assigned_node = "node_07_000042"`:                                                m.WorkloadsOnNode(7, 42, 1),
		"$key = " + NodeRef(7, 42).Key().String():                                         m.NodeState(7, 42, 1),
		matchText(m, `region = "us-east"`, firstIn(m, RegionUSEast)):                      m.NodeMatch(7, firstIn(m, RegionUSEast), 1),
		matchText(m, `region in ("eu-west" "us-east" "asia-pac")`, firstIn(m, RegionAny)): m.NodeMatch(7, firstIn(m, RegionAny), 1),
	} {
		require.Equal(t, want, q.Expr.String())
		parsed, err := query.Parse(want)
		require.NoError(t, err)
		require.Equal(t, parsed, q.Expr)
	}
	require.Equal(t, "node-match of wl_07_000123 at block 9", m.NodeMatch(7, 123, 9).String())
	require.Equal(t, "node-state of node_07_000042 at block 9", m.NodeState(7, 42, 1).At(9).String())
	require.Equal(t, "nodes-in-dc of dc_07 at block 9", m.NodesInDC(7, 9).String())
}

func firstIn(m *Model, region string) int {
	for w := 1; ; w++ {
		if e, _ := m.EntityAt(WorkloadRef(7, w), m.firstLoad); e.StringAttributes["region"] == region {
			return w
		}
	}
}

func matchText(m *Model, region string, workload int) string {
	w, _ := m.EntityAt(WorkloadRef(7, workload), m.firstLoad)
	number := func(name string) string { return query.Number(w.NumericAttributes[name]).String() }
	return `dc_id = "dc_07" && type = "node" && status = "available" && ` + region + ` && vm_type = "` + w.StringAttributes["vm_type"] +
		`" && cpu_count >= ` + number("req_cpu") + ` && ram_gb >= ` + number("req_ram") + ` && avail_hours >= ` + number("max_hours")
}

func TestReads(t *testing.T) {
	m := newModel(t, Config{DCs: 3, NodesPerDC: 1_000})
	head := func() uint64 { return 1_500 }
	const n = 20_000
	reads := take(m.Reads(1, head), n)
	require.Equal(t, reads, take(m.Reads(1, head), n), "the same seed asks the same")
	require.NotEqual(t, reads[:50], take(m.Reads(2, head), 50))

	counts := make([]int, kinds)
	past := 0
	for _, q := range reads {
		counts[q.Kind]++
		require.True(t, q.DC >= 1 && q.DC <= 3)
		require.NoError(t, query.Check(q.Expr))
		if q.Kind == NodeState {
			require.True(t, q.N >= 1 && q.N <= 1_000)
			require.LessOrEqual(t, q.Block, head())
			_, ok := m.versionAt(NodeRef(q.DC, q.N), q.Block)
			require.True(t, ok, "%s", q)
			if q.Block < head()/2 {
				past++
			}
			continue
		}
		require.Equal(t, head(), q.Block)
	}
	requireChiSquare(t, "reads", []int{counts[NodesInDC], counts[AvailableGPUNodes], counts[WorkloadsOnNode],
		counts[NodeMatch], counts[NodeState]}, []float64{.25, .20, .20, .20, .15})
	require.InDelta(t, 0.5, float64(past)/float64(counts[NodeState]), 0.05)
}
