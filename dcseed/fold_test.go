package dcseed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The oracle and the model agree with folding the stream and looking at every entity.
func TestAnswersMatchTheStream(t *testing.T) {
	one := Config{NodesPerDC: 1, Payload: 5, NodeUpdates: 3, WorkloadUpdates: 7}
	for name, test := range map[string]struct {
		cfg    Config
		blocks uint64 // of load
		every  uint64 // how often to compare
	}{
		"small":    {small(), 45, 4},
		"expiring": {expiring(), 7_000, 3_100},
		"one node": {one, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, test.cfg)
			store, o := newMemory(t), NewOracle(m)
			last := m.FirstLoadBlock() + test.blocks - 1
			for b, err := range m.Blocks(FirstBlock, last) {
				require.NoError(t, err)
				store.apply(b)
				if b.Number%test.every == 0 || b.Number == last || b.Number == m.FirstLoadBlock()-1 {
					requireSameState(t, m, store)
					requireSameAnswers(t, o, store)
				}
			}
		})
	}
}

func requireSameState(t *testing.T, m *Model, store *memory) {
	t.Helper()
	for _, p := range []*population{&m.nodes, &m.workloads} {
		for i := range p.count {
			r := p.ref(i)
			want, got := store.get(r.Key()), (*entity.Entity)(nil)
			v, ok := m.versionAt(r, store.head)
			if e, found := m.EntityAt(r, store.head); found {
				got = e
			}
			require.Equal(t, want != nil, got != nil, "%s at block %d", r, store.head)
			require.Equal(t, want != nil, ok)
			if want != nil {
				require.NoError(t, verifyState(Query{Content: true}, want, got), "%s at block %d", r, store.head)
				require.Equal(t, want.StringAttributes["status"], m.status(r, v.revision))
			}
		}
	}
}

func requireSameAnswers(t *testing.T, o *Oracle, store *memory) {
	t.Helper()
	ask := func(q Query) {
		require.NoError(t, query.Check(q.Expr))
		got := store.ask(q)
		require.NoError(t, o.Verify(q, got))
		q.Limit = 3
		require.NoError(t, o.Verify(q, store.ask(q)))
		q.Limit = 0
		require.NoError(t, o.Verify(q, store.ask(q)))
	}
	m, head := o.model, store.head
	for dc := 1; dc <= m.cfg.DCs; dc++ {
		ask(m.NodesInDC(dc, head))
		ask(m.AvailableGPUNodes(dc, head))
		for i := range 5 {
			node := i*m.cfg.NodesPerDC/5 + 1
			ask(m.WorkloadsOnNode(dc, node, head))
			ask(m.NodeState(dc, node, head))
			ask(m.NodeMatch(dc, i*m.cfg.NodesPerDC+1, head))
		}
	}
}

// While nothing has expired the answers are round numbers.
func TestExactAnswers(t *testing.T) {
	m := newModel(t, Config{NodesPerDC: 1_000, DCs: 2})
	o := NewOracle(m)
	for _, block := range []uint64{m.FirstLoadBlock() - 1, ShortestLife, 1 << 30} {
		require.Len(t, o.Expected(m.NodesInDC(2, block)).Keys, 1_000)
		for _, node := range []int{1, 500, 1_000} {
			require.Len(t, o.Expected(m.WorkloadsOnNode(1, node, block)).Keys, 5)
		}
	}
	require.Empty(t, o.Expected(m.NodesInDC(2, 0)).Keys, "before the first block")
}

func TestExpiringNeedsCreation(t *testing.T) {
	m := newModel(t, expiring())
	created := 0
	for block := m.FirstLoadBlock(); block < m.FirstLoadBlock()+9_000; block++ {
		for r, revision := range m.revisions(block) {
			if r.Class == ClassNode && m.revives(r, revision) {
				created++
			}
		}
	}
	require.Positive(t, created, "the configuration must cover expired entities")
}
