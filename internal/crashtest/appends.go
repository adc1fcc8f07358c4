package crashtest

import (
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/event"
)

// The types and tag values of events. They are few, so that queries select many
// events.
var (
	eventTypes  = []string{"opened", "moved", "closed"}
	eventGroups = []string{"group:0", "group:1", "group:2", "group:3"}
)

// The keys of tags. An append that claims a slot is conditional: only one
// append may succeed.
const (
	tagGroup  = "group"
	tagAppend = "append"
	tagClaim  = "claim"
)

// A drawnAppend is one call of Events.Append, drawn from its name and seed.
type drawnAppend struct {
	name   string
	events []event.Event
	claim  *event.Tag       // the slot that it claims; nil when it has no condition
	cond   *event.Condition // of the claim
}

// drawAppend draws an append. The same name and seed give the same events.
func drawAppend(name string, seed uint64) drawnAppend {
	rng := newRand(seed)
	a := drawnAppend{name: name}
	if rng.IntN(3) == 0 {
		claim := event.NewTag(tagClaim, fmt.Sprint(rng.IntN(400)))
		a.claim, a.cond = &claim, event.Unless(event.Tagged(claim))
	}
	withIDs := rng.IntN(2) == 0
	for i := range 1 + rng.IntN(4) {
		e := event.Event{
			Type: eventTypes[rng.IntN(len(eventTypes))],
			Data: fmt.Appendf(nil, "%s %d %0*d", name, i, rng.IntN(300), 0),
			Tags: []event.Tag{
				event.NewTag(tagAppend, name), event.NewTag(tagGroup, fmt.Sprint(rng.IntN(len(eventGroups)))),
			},
		}
		if a.claim != nil {
			e.Tags = append(e.Tags, *a.claim)
		}
		if withIDs {
			e.ID = event.ID{15: byte(i)}
			for j := range 8 {
				e.ID[j] = byte(seed >> (8 * j))
			}
		}
		a.events = append(a.events, e)
	}
	return a
}

// ledger has the appends that a journal describes.
type ledger struct {
	order   []string // names of the announced appends, without those known to be lost
	appends map[string]*entry
	reads   map[uint64]string // the append whose event was read at a position
}

// entry is an append and its outcome.
type entry struct {
	drawnAppend
	seed      uint64
	acked     bool
	refused   bool // by its condition
	positions []uint64
}

// newLedger replays a journal.
func newLedger(records []record) (*ledger, error) {
	l := &ledger{appends: map[string]*entry{}, reads: map[uint64]string{}}
	for i, r := range records {
		switch {
		case r.Resumed:
			l.resume(r)
		case r.Read > 0:
			l.reads[r.Read] = r.Name
		case r.Ack:
			if l.appends[r.Name] == nil {
				return nil, fmt.Errorf("journal line %d: append %q was not announced", i+1, r.Name)
			}
			l.acknowledge(r)
		default:
			l.announce(r)
		}
	}
	return l, nil
}

func (l *ledger) announce(r record) *entry {
	e := &entry{drawnAppend: drawAppend(r.Name, r.Seed), seed: r.Seed}
	l.appends[r.Name] = e
	l.order = append(l.order, r.Name)
	return e
}

func (l *ledger) acknowledge(r record) {
	e := l.appends[r.Name]
	e.acked, e.refused, e.positions = true, r.Conflict, r.Positions
}

// resume closes the steps that a crash left open: a step that was not found in
// the store never happened.
func (l *ledger) resume(r record) {
	gone := map[string]bool{}
	for _, name := range r.Lost {
		gone[name] = true
	}
	for _, name := range l.order {
		if e := l.appends[name]; !e.acked && !slices.Contains(r.Found, name) {
			gone[name] = true
		}
	}
	l.order = slices.DeleteFunc(l.order, func(name string) bool { return gone[name] })
	for name := range gone {
		delete(l.appends, name)
	}
}
