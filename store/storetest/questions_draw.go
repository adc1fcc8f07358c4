package storetest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/storetest/model"
)

// world is what the stores of RunQuestions hold: entities whose attributes are true of
// most, of many, of few or of one.
type world struct {
	blocks []store.Block
	states map[uint64]*model.Snapshot // at the blocks that are asked about, and at the head
	ats    []uint64                   // their keys, the head more often
	seen   map[uint64][]*store.Entity // what is visible there
	owners []store.Address
}

// worldBlocks is how many blocks a world has. They hold two operations for each entity.
const worldBlocks = 24

func newWorld(t *testing.T, entities int, seed uint64) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(entities)))
	w := &world{states: map[uint64]*model.Snapshot{}, seen: map[uint64][]*store.Entity{}}
	for i := range byte(12) {
		w.owners = append(w.owners, store.Address{0: i * i, 19: 0xff - i})
	}
	var m model.Model
	var keys []store.Key
	number := uint64(1000)
	for range worldBlocks {
		number += 1 + r.Uint64N(3)
		b := store.Block{Number: number}
		draft := m.Draft(number)
		for i := range 2*entities/worldBlocks + 1 {
			op := model.Op(r, w.owners, keys, entities)
			op.TxIndex, op.OpIndex = uint32(i/100), uint32(i%100)
			if entities <= 100 {
				op.OpIndex /= 2 // operations of equal indexes
			}
			if draft.Add(&op) != nil {
				continue // it has ended
			}
			b.Ops = append(b.Ops, op)
			if op.Kind == store.Create {
				keys = append(keys, op.Key)
			}
		}
		require.NoError(t, m.Apply(b))
		w.blocks = append(w.blocks, b)
	}
	w.ats = []uint64{store.Head, store.Head, store.Head, store.Head, w.blocks[2].Number, w.blocks[worldBlocks/2].Number, number - 1}
	for _, at := range w.ats {
		state, err := m.At(at)
		require.NoError(t, err)
		w.states[at] = state
		w.seen[at], err = state.Query(nil, nil, 0, nil)
		require.NoError(t, err)
		require.NotEmpty(t, w.seen[at])
	}
	return w
}

// question draws what to ask.
func (w *world) question(r *rand.Rand) question {
	q := question{at: model.Choose(r, w.ats), limit: model.Choose(r, []int{1, 2, 3, 5, 10, 30, 100}), pages: model.Often(r, []int{1, 1, 2, 3}), count: r.IntN(4) == 0}
	if r.IntN(20) == 0 {
		q.limit = 0
	}
	d := model.Drawer{Rand: r, Seen: w.seen[q.at]}
	q.expr = d.Expr(1+model.Often(r, []int{0, 1, 2, 3, 4, 6, 8, 11}), d.Someone())
	for range model.Choose(r, []int{0, 0, 1, 1, 2, 3, 4}) {
		o := model.Choose(r, model.Columns)
		o.Desc = r.IntN(2) == 0
		if !slices.ContainsFunc(q.order, func(other store.Order) bool { return other.Name == o.Name && other.Kind == o.Kind }) {
			q.order = append(q.order, o)
		}
	}
	if r.IntN(3) == 0 {
		q.after = d.Someone()
	}
	return q
}
