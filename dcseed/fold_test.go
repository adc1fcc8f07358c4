package dcseed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The oracle and the model agree with folding the stream and looking at every
// entity.
func TestAnswersMatchTheStream(t *testing.T) {
	one := Config{NodesPerDC: 1, WorkloadsPerDC: 3, Payload: 5, NodeUpdates: 3, WorkloadUpdates: 7}
	endless, recorded, lone := small(), small(), small()
	endless.Endless, recorded.RecordEvents = true, true
	lone.WorkloadsPerDC, lone.WorkloadUpdates, lone.FirstBlock = -1, 0, 1_000
	still := small()
	still.NodeUpdates, still.WorkloadUpdates = -1, -1

	for name, test := range map[string]struct {
		cfg    Config
		blocks uint64 // of load
		every  uint64 // how often to compare
	}{
		"small":    {small(), 45, 4},
		"expiring": {expiring(), 11_000, 3_100},
		"endless":  {endless, 20, 9},
		"recorded": {recorded, 20, 6},
		"nodes":    {lone, 20, 6},
		"still":    {still, 4, 2},
		"one node": {one, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, test.cfg)
			store, o := newMemory(t), NewOracle(m)
			last := m.FirstLoadBlock() + test.blocks - 1
			for b, err := range m.Blocks(m.Config().FirstBlock, last) {
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
	visible := uint64(0)
	for key := range store.entities {
		if store.get(key) != nil {
			visible++
		}
	}
	nodes, workloads, events := m.Visible(store.head)
	require.Equal(t, visible, nodes+workloads+events, "block %d", store.head)
	for _, p := range []*population{&m.nodes, &m.workloads} {
		for i := range p.count {
			r := p.ref(i)
			want, got := store.get(r.Key()), (*entity.Entity)(nil)
			status, ok := m.StatusAt(r, store.head)
			if e, found := m.EntityAt(r, store.head); found {
				got = e
			}
			require.Equal(t, want != nil, got != nil, "%s at block %d", r, store.head)
			require.Equal(t, want != nil, ok)
			if want != nil {
				require.Empty(t, Differences(want, got, true), "%s at block %d", r, store.head)
				require.Equal(t, want.StringAttributes["status"], status)
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
		want := o.Expected(q)
		require.Equal(t, got.Keys, keysUnlessState(q, want), q)
		q.CountOnly = q.Kind != NodeState
		require.NoError(t, o.Verify(q, got))
		q.CountOnly, q.Limit = false, 3
		require.NoError(t, o.Verify(q, store.ask(q)))
		q.Limit = 0
		require.NoError(t, o.Verify(q, store.ask(q)))
	}
	m, head := o.model, store.head
	for dc := 1; dc <= m.cfg.DCs; dc++ {
		ask(m.NodesInDC(dc, head))
		ask(m.AvailableGPUNodes(dc, head))
		ask(m.PendingWorkloads(dc, head))
		for i := range 5 {
			node := i*m.cfg.NodesPerDC/5 + 1
			ask(m.WorkloadsOnNode(dc, node, head))
			ask(m.NodeState(dc, node, head))
			if w := i * m.cfg.WorkloadsPerDC / 5; w > 0 {
				ask(m.NodeMatch(dc, w, head))
			}
		}
	}
}

func keysUnlessState(q Query, a Answer) []entity.Key {
	if q.Kind == NodeState {
		return nil
	}
	return a.Keys
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

	still := NewOracle(newModel(t, Config{NodesPerDC: 1_000, NodeUpdates: -1}))
	q := still.model.NodesInDC(1, ShortestLife)
	q.CountOnly = true
	require.EqualValues(t, 1_000, still.Expected(q).Count)
	require.Less(t, still.Expected(q.At(20_000)).Count, uint64(1_000), "without turns lives run out")
}

func TestExpiringNeedsCreation(t *testing.T) {
	m := newModel(t, expiring())
	created := map[EventType]int{}
	for block := m.FirstLoadBlock(); block < m.FirstLoadBlock()+9_000; block++ {
		for r, turn := range m.turns(block) {
			if r.Class == ClassWorkload {
				continue
			}
			e := m.event(r, turn)
			created[e.typ]++
			require.Equal(t, e.typ == EventCreated, e.old == "")
		}
	}
	require.Positive(t, created[EventCreated], "the configuration must cover expired entities")
}

func TestEventsTellTheStream(t *testing.T) {
	cfg := small()
	cfg.RecordEvents = true
	m := newModel(t, cfg)
	store := newMemory(t)
	store.applyAll(m.Initial())
	for b, err := range m.Load(12) {
		require.NoError(t, err)
		updates := m.cfg.NodeUpdates + m.cfg.WorkloadUpdates
		require.Len(t, b.Ops, 2*updates)
		i := 0
		for r, turn := range m.turns(b.Number) {
			e := m.event(r, turn)
			before, after := store.get(r.Key()).StringAttributes["status"], b.Ops[i].StringAttributes["status"]
			require.Equal(t, [2]string{before, after}, [2]string{e.old, e.new})
			require.Equal(t, e.old == e.new, e.typ == EventHeartbeat)
			record := b.Ops[updates+i]
			require.Equal(t, []string{string(e.typ), e.old, e.new}, []string{record.StringAttributes["event_type"],
				record.StringAttributes["old_status"], record.StringAttributes["new_status"]})
			require.Equal(t, b.Number, record.NumericAttributes["block"])
			i++
		}
		require.Equal(t, updates, i)
		store.apply(b)
	}
}
