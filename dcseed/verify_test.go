package dcseed

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

func mismatch(t *testing.T, err error) *Mismatch {
	t.Helper()
	require.ErrorIs(t, err, ErrMismatch)
	var m *Mismatch
	require.ErrorAs(t, err, &m)
	return m
}

func TestVerifyNamesKeys(t *testing.T) {
	m := newModel(t, small())
	o := NewOracle(m)
	q := m.NodesInDC(1, m.FirstLoadBlock())
	right := o.Expected(q)
	require.NoError(t, o.Verify(q, right))

	at := slices.Index(right.Keys, NodeRef(1, 7).Key())
	wrong := slices.Clone(right.Keys)
	wrong[at] = WorkloadRef(2, 9).Key()
	status, _ := m.StatusAt(WorkloadRef(2, 9), q.Block)
	err := o.Verify(q, Answer{Keys: wrong})
	got := mismatch(t, err)
	require.Equal(t, []string{"node_01_000007"}, got.Missing)
	require.Equal(t, []string{WorkloadRef(2, 9).Key().String() + " = wl_02_000009 (" + status + ")"}, got.Extra)
	require.EqualError(t, err, "wrong answer: "+q.String()+"; missing: node_01_000007; extra: "+got.Extra[0])

	foreign := append(slices.Clone(right.Keys), entity.Key{1})
	require.Equal(t, []string{entity.Key{1}.String()}, mismatch(t, o.Verify(q, Answer{Keys: foreign})).Extra)

	twice := append(slices.Clone(right.Keys), right.Keys[0])
	require.Equal(t, []string{right.Keys[0].String()}, mismatch(t, o.Verify(q, Answer{Keys: twice})).Duplicates)

	swapped := slices.Clone(right.Keys)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	require.Equal(t, "position 0 is node_01_000029, want node_01_000030", mismatch(t, o.Verify(q, Answer{Keys: swapped})).Order)

	err = o.Verify(q, Answer{})
	require.Len(t, mismatch(t, err).Missing, 30)
	require.ErrorContains(t, err, "0 found, want 30")
	require.ErrorContains(t, err, "and 25 more")
}

func TestVerifyCounts(t *testing.T) {
	m := newModel(t, small())
	o := NewOracle(m)
	q := m.WorkloadsOnNode(2, 3, m.FirstLoadBlock())
	q.CountOnly = true
	require.NoError(t, o.Verify(q, Answer{Count: 5}))
	require.ErrorContains(t, o.Verify(q, Answer{Count: 4}), "4 found, want 5")
}

func TestVerifyState(t *testing.T) {
	m := newModel(t, small())
	o := NewOracle(m)
	q := m.NodeState(1, 3, m.FirstLoadBlock()+5)
	right := func() *entity.Entity { return o.Expected(q).Entity }
	require.NoError(t, o.Verify(q, Answer{Entity: right()}))

	for want, damage := range map[string]func(e *entity.Entity){
		"content differs from byte 3 on":        func(e *entity.Entity) { e.Content[3]++ },
		"content has 0 bytes, want 21":          func(e *entity.Entity) { e.Content = nil },
		"status is on fire, want ":              func(e *entity.Entity) { e.StringAttributes["status"] = "on fire" },
		"ram_gb is missing, want":               func(e *entity.Entity) { delete(e.NumericAttributes, "ram_gb") },
		"extra is 1, want none":                 func(e *entity.Entity) { e.NumericAttributes["extra"] = 1 },
		"$expiration is 9, want":                func(e *entity.Entity) { e.Expiration = 9 },
		"$lastModifiedAtBlock is 9, want":       func(e *entity.Entity) { e.LastModifiedAtBlock = 9 },
		"$owner is 0x000000":                    func(e *entity.Entity) { e.Owner = entity.Address{} },
		"content type is text/plain, want appl": func(e *entity.Entity) { e.ContentType = "text/plain" },
	} {
		e := right()
		damage(e)
		err := o.Verify(q, Answer{Entity: e})
		require.ErrorContains(t, err, want)
		require.Len(t, mismatch(t, err).Fields, 1)
	}
	require.ErrorContains(t, o.Verify(q, Answer{}), "missing: node_01_000003")

	bare := right()
	bare.Content = nil
	q.Content = false
	require.NoError(t, o.Verify(q, Answer{Entity: bare}))

	early := m.NodeState(2, 30, 1)
	require.NoError(t, o.Verify(early, Answer{}))
	require.ErrorContains(t, o.Verify(early, Answer{Entity: &entity.Entity{Key: early.Key()}}),
		"node_02_000030 (not visible)")
}

func TestIdentify(t *testing.T) {
	m := newModel(t, small())
	a, b := NodeRef(2, 30), WorkloadRef(2, 150)
	require.Equal(t, map[entity.Key]Ref{a.Key(): a, b.Key(): b}, m.Identify(a.Key(), entity.Key{}, b.Key()))
	require.Empty(t, m.Identify())
}
