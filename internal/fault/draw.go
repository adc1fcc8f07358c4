package fault

import (
	"fmt"
	"math/rand/v2"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

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
