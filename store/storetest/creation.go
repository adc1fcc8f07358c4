package storetest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runCreation cancels each call that creates tables or indexes, at each of its
// statements, and repeats the call on the same handle. The store must then work
// and Check find no damage, because the first attempt must leave nothing
// behind, neither in the database nor in prepared statements.
func runCreation(t *testing.T, h Harness) {
	t.Run("second options", func(t *testing.T) { testSecondOptions(t, h) })
	for _, c := range creatingCalls(h) {
		t.Run(c.name, func(t *testing.T) {
			t.Run("cancelled", func(t *testing.T) {
				c.run(t, h, func(cancel context.CancelFunc) error { cancel(); return nil })
			})
			t.Run("failed", func(t *testing.T) {
				c.run(t, h, func(context.CancelFunc) error { return errBroken })
			})
		})
	}
}

// testSecondOptions: a database has one entity store and one event store, and a
// later call with other options is refused with the option's name.
func testSecondOptions(t *testing.T, h Harness) {
	ctx := t.Context()
	db := h.open(t, h.quickURL(t), nil)
	entities := store.EntityOptions{Layout: "arkiv", Backlog: 100}
	events := store.EventOptions{Queue: 7, PollInterval: time.Second, IndexEvery: 5, LockedRows: 9}
	ents := must(db.Entities(ctx, &entities))(t)
	evs := must(db.Events(ctx, &events))(t)
	for name, other := range map[string]store.EntityOptions{
		"compact": {Layout: "compact"}, "Backlog": {Backlog: 101}, "ExtendAdds": {ExtendAdds: true},
		"DeferIndexes": {DeferIndexes: true},
	} {
		_, err := db.Entities(ctx, &other)
		require.ErrorContains(t, err, name)
	}
	for name, other := range map[string]store.EventOptions{
		"Queue": {Queue: 8}, "PollInterval": {PollInterval: time.Minute}, "IndexEvery": {IndexEvery: 6},
		"LockedRows": {LockedRows: 10}, "Now": {Now: time.Now},
	} {
		refuses(t, store.ErrInvalid, name)(db.Events(ctx, &other))
	}
	for _, same := range []*store.EntityOptions{nil, {}, &entities} {
		require.Same(t, ents, must(db.Entities(ctx, same))(t))
	}
	for _, same := range []*store.EventOptions{nil, {}, &events} {
		require.Same(t, evs, must(db.Events(ctx, same))(t))
	}
}

// creatingCall is a call that creates tables or indexes.
type creatingCall struct {
	name   string
	before func(t *testing.T, url string) // fills the database
	call   func(ctx context.Context, db *store.DB) error
	rare   bool // only some of its hundreds of statements are tried
}

func creatingCalls(h Harness) (list []creatingCall) {
	entities := func(options store.EntityOptions) func(context.Context, *store.DB) error {
		return func(ctx context.Context, db *store.DB) error {
			_, err := db.Entities(ctx, &options)
			return err
		}
	}
	events := func(ctx context.Context, db *store.DB) error {
		_, err := db.Events(ctx, nil)
		return err
	}
	nothing := func(*testing.T, string) {}
	made := func(calls ...func(context.Context, *store.DB) error) func(*testing.T, string) {
		return func(t *testing.T, url string) {
			db := openDB(t, url)
			for _, call := range calls {
				require.NoError(t, call(t.Context(), db))
			}
			closeDB(t, db)
		}
	}
	for _, h.layout = range h.layouts() {
		if h.repeats() {
			continue
		}
		options := store.EntityOptions{Layout: h.layout}
		list = append(list, creatingCall{name: "entities " + h.layout, before: nothing, call: entities(options)})
	}
	layouts := slices.DeleteFunc([]string{"arkiv", "compact"}, func(l string) bool { return !slices.Contains(h.layouts(), l) })
	for _, layout := range layouts {
		h := h.with(layout)
		var backup []byte
		restore := func(ctx context.Context, db *store.DB) error {
			_, err := db.Restore(ctx, bytes.NewReader(backup), nil)
			return err
		}
		back := func(t *testing.T, _ string) {
			if backup == nil {
				backup = backupForCheck(t, h)
			}
		}
		repair := func(ctx context.Context, db *store.DB) error {
			r, err := db.Repair(ctx, nil)
			if err == nil {
				err = r.Err()
			}
			return err
		}
		filled := func(t *testing.T, url string) { require.NoError(t, fillForCheck(t, h, url).Close()) }
		list = append(list,
			creatingCall{name: "restore " + layout, before: back, call: restore},
			creatingCall{name: "repair " + layout, before: filled, call: repair, rare: true})
	}
	return append(list,
		creatingCall{name: "events", before: nothing, call: events},
		creatingCall{name: "events of a store of entities", before: made(entities(store.EntityOptions{})), call: events},
		creatingCall{name: "entities of a store of events", before: made(events), call: entities(store.EntityOptions{})},
		creatingCall{name: "indexes", before: made(entities(store.EntityOptions{Layout: "arkiv", DeferIndexes: true})), call: entities(store.EntityOptions{})},
		creatingCall{name: "checkpoints", before: made(events), call: func(ctx context.Context, db *store.DB) error {
			evs, err := db.Events(ctx, nil)
			if err == nil {
				_, err = evs.Advance(ctx, event.Checkpoint{Consumer: "first"}, nil, nil)
			}
			return err
		}})
}

// backupForCheck returns a backup of a store with a consumer.
func backupForCheck(t *testing.T, h Harness) []byte {
	db := fillForCheck(t, h, h.quickURL(t))
	evs := call1(t, db.Events, nil)
	must(evs.Advance(t.Context(), event.Checkpoint{Consumer: "first", To: 3}, nil, nil))(t)
	var file bytes.Buffer
	must(db.Backup(t.Context(), &file, nil))(t)
	closeDB(t, db)
	return file.Bytes()
}

// run cancels the call at its first statement, then at its second, until it has
// no more. After each attempt the call is repeated on the same handle. On slow
// engines that repetition is also the next attempt, because a new database for
// each statement would take minutes.
func (c creatingCall) run(t *testing.T, h Harness, fault func(context.CancelFunc) error) {
	step := int64(1)
	switch {
	case c.rare && h.slow():
		step = 29
	case c.rare:
		step = 7
	}
	var db *store.DB
	var d countdown
	for at, fired := int64(1), true; fired; at += step {
		if db == nil {
			url := h.quickURL(t)
			c.before(t, url)
			db = openDB(t, tap(d.see).tapped(t, url, false))
		}
		ctx, cancel := context.WithCancel(t.Context())
		d.arm(at, func() error { return fault(cancel) })
		err := c.call(ctx, db)
		fired = d.disarm()
		cancel()
		if err != nil {
			require.NotErrorIs(t, err, store.ErrCorrupt, "statement %d", at)
			if h.slow() {
				continue
			}
			require.NoError(t, c.call(t.Context(), db), "after it was given up at statement %d", at)
		}
		requireUsable(t, db, at)
		closeDB(t, db)
		db = nil
	}
	require.Nil(t, db, "the call that is not given up succeeds")
}

// requireUsable writes to the entities, the events and a consumer, makes a
// backup and runs a check.
func requireUsable(t *testing.T, db *store.DB, at int64) {
	t.Helper()
	ctx := t.Context()
	ents := must(db.Entities(ctx, nil))(t)
	head := must(ents.Head(ctx))(t)
	must(ents.Apply(ctx, newBlock(head.Number+1, on("used", opCreate(1)))))(t)
	evs := must(db.Events(ctx, nil))(t)
	must(evs.Append(ctx, []event.Event{ev("A", "used", "x:1")}, nil))(t)
	c := event.Checkpoint{Consumer: "user", From: must(evs.Checkpoint(ctx, "user"))(t), To: must(evs.Head(ctx))(t)}
	_, err := evs.Advance(ctx, c, nil, nil)
	require.NoError(t, err, "given up at statement %d", at)
	must(db.Backup(ctx, io.Discard, nil))(t)
	report := must(db.Check(ctx, nil))(t)
	require.NoError(t, report.Err(), "given up at statement %d", at)
}

// countdown calls a function at the n-th call to an engine. Reading a row does
// not count.
type countdown struct {
	left  atomic.Int64
	fault func() error
}

// arm sets the function and n.
func (d *countdown) arm(at int64, fault func() error) {
	d.fault = fault
	d.left.Store(at)
}

// disarm removes the function and reports whether it was called.
func (d *countdown) disarm() bool { return d.left.Swap(0) <= 0 }

func (d *countdown) see(call, _ string) error {
	if strings.HasSuffix(call, "next") || strings.HasSuffix(call, "scan") {
		return nil
	}
	if d.left.Add(-1) != 0 {
		return nil
	}
	err := d.fault()
	if call == "sync" { // runEventDurable tests syncs that fail
		return nil
	}
	return err
}
