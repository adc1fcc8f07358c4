package dcseed

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

func TestVerifyKeys(t *testing.T) {
	m := newModel(t, small())
	o := NewOracle(m)
	q := m.NodesInDC(1, m.FirstLoadBlock())
	right := o.Expected(q).Keys
	require.NoError(t, o.Verify(q, Answer{Keys: right}))

	swapped := slices.Clone(right)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	foreign := slices.Clone(right)
	foreign[7] = entity.Key{1}
	for want, keys := range map[string][]entity.Key{
		"30 found, want 30; position 0 is " + right[1].String() + ", want " + right[0].String():      swapped,
		"30 found, want 30; position 7 is " + entity.Key{1}.String() + ", want " + right[7].String(): foreign,
		"31 found, want 30; position 30 is " + right[0].String() + ", want none":                     append(slices.Clone(right), right[0]),
		"0 found, want 30; position 0 is none, want " + right[0].String():                            nil,
	} {
		err := o.Verify(q, Answer{Keys: keys})
		require.ErrorIs(t, err, ErrMismatch)
		require.EqualError(t, err, "wrong answer: "+q.String()+": "+want)
	}
}

func TestVerifyState(t *testing.T) {
	m := newModel(t, small())
	o := NewOracle(m)
	q := m.NodeState(1, 3, m.FirstLoadBlock()+5)
	right := func() *entity.Entity { return o.Expected(q).Entity }
	require.NoError(t, o.Verify(q, Answer{Entity: right()}))

	for want, damage := range map[string]func(e *entity.Entity){
		"another content":            func(e *entity.Entity) { e.Content[3]++ },
		"another string attributes":  func(e *entity.Entity) { e.StringAttributes["status"] = "on fire" },
		"another numeric attributes": func(e *entity.Entity) { delete(e.NumericAttributes, "ram_gb") },
		"another key":                func(e *entity.Entity) { e.Key = entity.Key{1} },
		"another owner":              func(e *entity.Entity) { e.Owner = entity.Address{} },
		"another creator":            func(e *entity.Entity) { e.Creator = entity.Address{} },
		"another content type":       func(e *entity.Entity) { e.ContentType = "text/plain" },
		"another sequence":           func(e *entity.Entity) { e.Sequence++ },
		"another expiration":         func(e *entity.Entity) { e.Expiration = 9 },
		"another last change":        func(e *entity.Entity) { e.LastModifiedAtBlock = 9 },
	} {
		e := right()
		damage(e)
		err := o.Verify(q, Answer{Entity: e})
		require.ErrorIs(t, err, ErrMismatch)
		require.EqualError(t, err, "wrong answer: "+q.String()+": "+want)
	}
	require.ErrorContains(t, o.Verify(q, Answer{}), "found is false, want true")

	bare := right()
	bare.Content = nil
	q.Content = false
	require.NoError(t, o.Verify(q, Answer{Entity: bare}))

	early := m.NodeState(2, 30, 1)
	require.NoError(t, o.Verify(early, Answer{}))
	require.ErrorContains(t, o.Verify(early, Answer{Entity: &entity.Entity{Key: early.Key()}}), "found is true, want false")
}
