package storetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// runEventHistory compares random histories of an event store with a list in
// memory. Meanwhile the store is opened again with another IndexEvery and
// restored from its backup, commits fail, the clock stands still or goes back,
// and consumers move without events. Conditions, reads and repetitions must
// agree with the list, and Check finds no damage. Some stores have so many
// events that their lists of events by tag need several rows, and some queries
// have many items.
//
// A history that fails is reduced and printed with its seed; see fail.
func runEventHistory(t *testing.T, h Harness) {
	n := 40
	if h.slow() || h.connect != nil {
		n = 5
	}
	for i := range cmp.Or(*histories, n) {
		if !t.Run(fmt.Sprint(i), func(t *testing.T) { eventHistory(t, h, i) }) {
			return
		}
	}
	for name, history := range keptIn[eventStep](t, keptEventHistories) {
		t.Run(name, func(t *testing.T) { replay[eventStep](newEventMachine(t, h), history) })
	}
}

// eventHistory draws a history and runs it. If it fails, it is reduced.
func eventHistory(t *testing.T, h Harness, i int) {
	random := randomSource(t, i)
	var m *eventMachine
	failure := try(t, func(t testing.TB) {
		m = newEventMachine(t, h)
		defer m.close()
		d := &eventHistoryDrawer{Drawer: &model.Drawer{Rand: random}, eventMachine: m, many: i%8 == 4}
		d.draw()
	})
	if failure != "" {
		start := func(t testing.TB) player[eventStep] { return newEventMachine(t, h) }
		fail(t, keptEventHistories, start, m.history, failure)
	}
	text := formatHistory(m.history)
	require.Equal(t, text, formatHistory(parseHistory[eventStep](t, text)), "a history is read as it was written")
}

// eventHistoryDrawer draws the steps of a machine while it runs them, because
// each step depends on the model's state.
type eventHistoryDrawer struct {
	*model.Drawer
	*eventMachine
	many   bool // the store holds thousands of events
	giveUp bool // the next call is made twice
	ids    int  // the last one
}

// draw draws and runs all steps.
func (d *eventHistoryDrawer) draw() {
	d.do(eventStep{Do: "open", Every: d.every()})
	all := []func(){
		d.append, d.append, d.append, d.repeat, d.advance, d.move, d.alone, d.importMore, d.fail, d.openOther, d.restore,
		d.read, d.read, d.check,
	}
	if d.many {
		for len(d.model) < 3000 {
			d.do(eventStep{Do: "append", Events: d.events(1, 900)})
		}
		all = append(all, d.judge, d.judge, d.judge, d.judge, d.judge)
	} else {
		all = append(all, d.truncate)
	}
	if d.h.connect == nil { // a service has the lease of its store until the test ends
		all = append(all, d.reopen, d.twice, d.twice, d.twice)
	}
	for range 30 {
		model.One(d.Drawer, all...)()
	}
	d.judge()
	d.checkState()
}

// call draws the options that calls share, and runs a step.
func (d *eventHistoryDrawer) call(s eventStep) {
	s.Wait = int64(model.One(d.Drawer, 0, 0, 0, time.Nanosecond, time.Microsecond, time.Second, -time.Minute, time.Hour))
	s.Process = d.IntN(2)
	if d.giveUp {
		s.GiveUp, s.Broken = d.between(1, 12), d.Chance(2)
	}
	d.do(s)
}

// twice runs a random step that is cancelled, and then completely, on the same
// handle.
func (d *eventHistoryDrawer) twice() {
	calls := []func(){d.append, d.advance, d.move, d.read, d.importMore, d.reopen}
	if !d.many {
		calls = append(calls, d.truncate)
	}
	d.giveUp = true
	model.One(d.Drawer, calls...)()
	d.giveUp = false
	d.judge()
}

func (d *eventHistoryDrawer) check() { d.do(eventStep{Do: "check"}) }

func (d *eventHistoryDrawer) every() int { return model.One(d.Drawer, 1, 2, 3, 5, 8, 16, 0) }

func (d *eventHistoryDrawer) openOther() {
	d.do(eventStep{Do: "other", Every: d.every()})
	d.begin()
}

func (d *eventHistoryDrawer) reopen() {
	d.call(eventStep{Do: "open", Every: d.every()})
	d.giveUp = false
	d.begin()
}

func (d *eventHistoryDrawer) restore() {
	d.judge()
	d.do(eventStep{Do: "restore", Every: d.every(), Process: d.IntN(2)})
	d.begin()
}

// begin runs a random step first on a newly opened store, because the first
// call on a handle must look up the store's content.
func (d *eventHistoryDrawer) begin() {
	model.One(d.Drawer, d.advance, d.move, d.append, d.repeat, d.truncate, d.fail, d.read)()
	d.judge()
}

// judge appends under conditions and reads.
func (d *eventHistoryDrawer) judge() {
	for range 2 {
		d.append()
		d.read()
	}
}

func (d *eventHistoryDrawer) append() {
	d.call(eventStep{Do: "append", Events: d.events(1, 6), Condition: d.condition()})
}

// repeat appends events that are stored already, unchanged or changed.
func (d *eventHistoryDrawer) repeat() {
	known := slices.DeleteFunc(slices.Clone(d.model), func(e event.Sequenced) bool { return e.ID.IsZero() })
	if len(known) == 0 {
		return
	}
	var events []event.Event
	for _, e := range some(d.Rand, known, 1, 3) {
		events = append(events, e.Event)
	}
	switch model.One(d.Drawer, "same", "same", "changed", "more") {
	case "changed":
		change := model.One(d.Drawer,
			func(e *event.Event) { e.Data = []byte("changed") }, func(e *event.Event) { e.Metadata = []byte("m") },
			func(e *event.Event) { e.Data, e.Metadata = nil, e.Data }, func(e *event.Event) { e.Type += "x" },
			func(e *event.Event) { e.Tags = append(slices.Clone(e.Tags), event.NewTag("changed", "")) })
		change(&events[0])
	case "more":
		events = append(events, ev("A", "new"))
	}
	d.do(eventStep{Do: "append", Events: events, Condition: d.condition(), Process: d.IntN(2)})
}

// advance moves a consumer, with events or without, or is refused.
func (d *eventHistoryDrawer) advance() {
	s := eventStep{Do: "advance", Consumer: model.One(d.Drawer, "a", "b"), To: uint64(d.between(0, len(d.model)+1))}
	s.From = d.checkpoints[s.Consumer]
	if d.Chance(5) {
		s.From += 7
	}
	s.Events, s.Condition = d.events(0, 6), d.condition()
	d.call(s)
}

// move moves a consumer and does nothing else.
func (d *eventHistoryDrawer) move() {
	d.call(eventStep{Do: "advance", Consumer: "mover", From: d.checkpoints["mover"], To: uint64(d.between(0, len(d.model)))})
}

func (d *eventHistoryDrawer) alone() { d.call(eventStep{Do: "alone", Events: d.events(1, 6)}) }

func (d *eventHistoryDrawer) importMore() {
	from := d.between(int(d.whole-1), len(d.model))
	d.call(eventStep{Do: "import", From: uint64(from), Events: d.events(1, 6), Batch: d.between(1, 4)})
}

func (d *eventHistoryDrawer) truncate() {
	d.call(eventStep{Do: "truncate", To: uint64(d.between(1, len(d.model)+2))})
}

// fail makes a transaction fail. The next one succeeds.
func (d *eventHistoryDrawer) fail() {
	d.do(eventStep{Do: "fail", Call: model.One(d.Drawer, "insert", "commit"), Events: d.events(1, 6)})
	d.judge()
}

func (d *eventHistoryDrawer) read() {
	opts := event.ReadOptions{
		From:      model.One(d.Drawer, 0, uint64(d.between(0, len(d.model)+1)), uint64(d.between(0, len(d.model)+1)), math.MaxUint64),
		Limit:     model.One(d.Drawer, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 300),
		Backwards: d.Chance(2),
		OnlyLast:  d.Chance(4),
	}
	if d.Chance(3) {
		opts.Since, opts.Until = d.moment(), d.moment()
	}
	d.call(eventStep{Do: "read", Query: d.eventQuery(), Options: opts})
}

// moment draws a time: zero, long ago, in the future, or at or next to an
// event's time.
func (d *eventHistoryDrawer) moment() time.Time {
	at := model.One(d.Drawer, d.now.AddDate(-1, 0, 0), d.now.AddDate(1, 0, 0), time.Time{})
	if len(d.model) > 0 && d.IntN(3) > 0 {
		at = model.One(d.Drawer, d.model...).Time.Add(model.One(d.Drawer, 0, time.Nanosecond, -time.Nanosecond))
	}
	return at
}

var (
	historyTypes = []string{"A", "B", "C"}
	historyTags  = []string{"x:1", "x:2", "y:1", "z:1"}
)

// some draws between least and most different elements.
func some[T any](r *rand.Rand, list []T, least, most int) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(least+r.IntN(most-least+1), len(list))]
}

// between draws a number, both ends included.
func (d *eventHistoryDrawer) between(low, high int) int { return low + d.IntN(high-low+1) }

// tags draws up to three tags. In a store of many events some tags are on all
// events, on every third, or on a few.
func (d *eventHistoryDrawer) tags() []string {
	list := historyTags
	if d.many {
		list = []string{"all:x", fmt.Sprint("many:", d.IntN(3)), fmt.Sprint("few:", d.IntN(300)), model.One(d.Drawer, historyTags...)}
	}
	return some(d.Rand, list, 0, 3)
}

func (d *eventHistoryDrawer) eventQuery() (q event.Query) {
	if d.many && d.Chance(12) {
		types := model.One(d.Drawer, "", "A")
		for i := range model.One(d.Drawer, 40, 250, 1200) {
			q.Items = append(q.Items, item(types, fmt.Sprint("few:", i)))
		}
	}
	for range d.IntN(4) {
		it := item("", d.tags()...)
		it.Types = some(d.Rand, historyTypes, 1-min(1, len(it.Tags)), 3)
		q.Items = append(q.Items, it)
	}
	return q
}

// events draws new events, some with IDs.
func (d *eventHistoryDrawer) events(least, most int) []event.Event {
	list := make([]event.Event, d.between(least, most))
	for i := range list {
		list[i] = ev(model.One(d.Drawer, historyTypes...), fmt.Sprint(d.head(), i), d.tags()...)
		if d.many && !slices.ContainsFunc(list[i].Tags, func(t event.Tag) bool { return t.Key == "all" }) {
			list[i].Tags = append(list[i].Tags, event.NewTag("all", "x"))
		}
		if d.Chance(3) || d.giveUp { // a repetition is recognized by IDs
			d.ids++
			list[i].ID = idOf(d.ids)
		}
	}
	return list
}

// condition draws a condition or none.
func (d *eventHistoryDrawer) condition() *event.Condition {
	if d.Chance(4) {
		return nil
	}
	return &event.Condition{FailIfEventsMatch: d.eventQuery(), After: uint64(d.between(0, len(d.model)+1))}
}
