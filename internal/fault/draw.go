package fault

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// keys is how many entities there are at most, so that each has several versions.
const keys = 40

// drawBlock draws a valid block to come after the model's head.
func drawBlock(rng *rand.Rand, m *model.Model) store.Block {
	b := store.Block{Number: m.Head().Block + 1 + uint64(rng.IntN(2))}
	live := map[store.Key]bool{}
	if s, err := m.At(store.Head); err == nil {
		list, _ := s.Query(nil, nil, 0, nil)
		for _, e := range list {
			live[e.Key] = b.Number < e.Expiration
		}
	}
	for i := range rng.IntN(9) {
		op := store.Op{
			TxIndex: uint32(i / 2), OpIndex: uint32(i % 2), Kind: store.Create,
			Key: store.Key{0: byte(rng.IntN(keys)), 31: 0xee}, Owner: store.Address{byte(rng.IntN(4))},
			BTL: [...]uint64{math.MaxUint64, 500, 10, 30, 60}[rng.IntN(5)],
		}
		if live[op.Key] {
			op.Kind = [...]entity.Kind{store.Update, store.Update, store.Update, store.ExtendBTL, store.ChangeOwner, store.Delete}[rng.IntN(6)]
		}
		live[op.Key] = op.Kind != store.Delete
		if op.Kind == store.Create || op.Kind == store.Update {
			drawContent(rng, &op)
		}
		b.Ops = append(b.Ops, op)
	}
	return b
}

func drawContent(rng *rand.Rand, op *store.Op) {
	size := rng.IntN(400)
	if rng.IntN(20) == 0 {
		size = rng.IntN(9000) // several pages
	}
	op.Content = make([]byte, size)
	for i := range op.Content {
		op.Content[i] = byte(rng.Uint32())
	}
	op.ContentType = "application/octet-stream"
	op.StringAttributes = map[string]string{"group": fmt.Sprint("g", rng.IntN(5)), "unique": fmt.Sprint("u", rng.Uint32())}
	op.NumericAttributes = map[string]uint64{"n": uint64(rng.IntN(12))}
	switch rng.IntN(4) {
	case 0:
		op.StringAttributes["rare"] = [...]string{"", "a", "ab", "日本"}[rng.IntN(4)]
	case 1:
		op.NumericAttributes["big"] = math.MaxInt64 + uint64(rng.IntN(4))
	}
}

// drawEvent draws an event; some have an ID.
func drawEvent(rng *rand.Rand) store.Event {
	e := store.Event{
		Type: [...]string{"A", "B", "C"}[rng.IntN(3)],
		Data: make([]byte, rng.IntN(300)),
		Tags: []store.Tag{event.NewTag("group", fmt.Sprint(rng.IntN(4))), event.NewTag("one", fmt.Sprint(rng.Uint32()))},
	}
	for i := range e.Data {
		e.Data[i] = byte(rng.Uint32())
	}
	if rng.IntN(2) == 0 {
		for i := range e.ID {
			e.ID[i] = byte(rng.Uint32())
		}
	}
	if rng.IntN(3) == 0 {
		e.Metadata = []byte(`{"by":"test"}`)
	}
	return e
}
