package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/query"

	_ "github.com/varvedb/varve/store/sqlite"
)

// temporary opens a new store in a temporary directory.
func temporary(ctx context.Context) (*store.Entities, func()) {
	db, done := temporaryDB(ctx)
	ents, err := db.Entities(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	return ents, done
}

// temporaryEvents opens a new event store in a temporary directory.
func temporaryEvents(ctx context.Context) (*store.Events, func()) {
	db, done := temporaryDB(ctx)
	events, err := db.Events(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	return events, done
}

func temporaryDB(ctx context.Context) (*store.DB, func()) {
	dir, err := os.MkdirTemp("", "varve-example")
	if err != nil {
		log.Fatal(err)
	}
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "varve.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	return db, func() {
		if err := errors.Join(db.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// node makes the operation that creates a node with a number of processors.
func node(id byte, cpu uint64, blocksToLive uint64) entity.Op {
	return entity.Op{
		Kind: entity.Create, OpIndex: uint32(id), Key: entity.Key{id}, Owner: entity.Address{1}, BTL: blocksToLive,
		ContentType: "text/plain", Content: []byte("hello"),
		StringAttributes:  map[string]string{"type": "node", "status": "available"},
		NumericAttributes: map[string]uint64{"cpu": cpu},
	}
}

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "varve-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	url := "sqlite://" + dir + "/varve.db?durability=relaxed"
	db, err := store.Open(ctx, url, &store.Options{Memory: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	settings, err := db.Engine().Settings(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range settings {
		if s.Name == "journal_mode" || s.Name == "synchronous" {
			fmt.Println(s.Name, s.Value)
		}
	}
	// Output:
	// journal_mode wal
	// synchronous 1
}

func ExampleEntities_Apply() {
	ctx := context.Background()
	ents, done := temporary(ctx)
	defer done()
	_, err := ents.Apply(ctx, entity.Block{Number: 7, Ops: []entity.Op{node(1, 4, 100), node(2, 16, entity.MaxBlock)}})
	if err != nil {
		log.Fatal(err)
	}
	// A block that cannot be applied as a whole changes nothing.
	_, err = ents.Apply(ctx, entity.Block{Number: 8, Ops: []entity.Op{{Kind: entity.Delete, TxIndex: 3, Key: entity.Key{9}}}})
	var at *entity.OpError
	fmt.Println(errors.Is(err, store.ErrNotFound), errors.As(err, &at), at.Block, at.TxIndex, at.OpIndex)
	head, err := ents.Head(ctx)
	fmt.Println(head.Number, err)
	// Output:
	// true true 8 3 0
	// 7 <nil>
}

func ExampleEntities_At() {
	ctx := context.Background()
	ents, done := temporary(ctx)
	defer done()
	blocks := []entity.Block{
		{Number: 1, Ops: []entity.Op{node(1, 4, 10)}},
		{Number: 2, Ops: []entity.Op{{Kind: entity.ChangeOwner, Key: entity.Key{1}, Owner: entity.Address{2}}}},
	}
	for _, b := range blocks {
		if _, err := ents.Apply(ctx, b); err != nil {
			log.Fatal(err)
		}
	}
	for _, block := range []uint64{1, store.Head} {
		snap, err := ents.At(ctx, block)
		if err != nil {
			log.Fatal(err)
		}
		e, err := snap.Get(ctx, entity.Key{1})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("block %d: owner %.6s…, expires at %d\n", snap.Number(), e.Owner, e.Expiration)
		if err := snap.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// block 1: owner 0x0100…, expires at 11
	// block 2: owner 0x0200…, expires at 11
}

func ExampleSnapshot_Query() {
	ctx := context.Background()
	ents, done := temporary(ctx)
	defer done()
	var ops []entity.Op
	for id := range byte(5) {
		ops = append(ops, node(id, uint64(id)*4, 100))
	}
	if _, err := ents.Apply(ctx, entity.Block{Number: 1, Ops: ops}); err != nil {
		log.Fatal(err)
	}
	q, err := query.Parse(`type = "node" && cpu >= 4`)
	if err != nil {
		log.Fatal(err)
	}
	opts := &store.QueryOptions{Limit: 3, Order: []store.Order{{Name: "cpu", Kind: entity.Numeric}}}
	for page := 1; ; page++ {
		last, n := printPage(ctx, ents, q, opts, page)
		if n < opts.Limit {
			return
		}
		opts.After = last // each page may use a new snapshot
	}
	// Output:
	// page 1: cpu 4
	// page 1: cpu 8
	// page 1: cpu 12
	// page 2: cpu 16
}

// printPage prints a page and returns its cursor and length.
func printPage(ctx context.Context, ents *store.Entities, q query.Expr, opts *store.QueryOptions, page int) (cursor store.Cursor, n int) {
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	for e, err := range snap.Query(ctx, q, opts) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("page %d: cpu %d\n", page, e.NumericAttributes["cpu"])
		n++
		if cursor, err = snap.Cursor(e, opts); err != nil {
			log.Fatal(err)
		}
	}
	return cursor, n
}

func ExampleEntities_Rewind() {
	ctx := context.Background()
	ents, done := temporary(ctx)
	defer done()
	before, err := ents.Apply(ctx, entity.Block{Number: 1, Ops: []entity.Op{node(1, 4, 10)}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ents.Apply(ctx, entity.Block{Number: 2, Ops: []entity.Op{{Kind: entity.Delete, Key: entity.Key{1}}}}); err != nil {
		log.Fatal(err)
	}
	if err := ents.Rewind(ctx, 1); err != nil {
		log.Fatal(err)
	}
	head, err := ents.Head(ctx)
	fmt.Println(head == before.Head, err)
	// Output: true <nil>
}

func ExampleEntities_Prune() {
	ctx := context.Background()
	ents, done := temporary(ctx)
	defer done()
	for n := range uint64(3) {
		if _, err := ents.Apply(ctx, entity.Block{Number: n + 1, Ops: []entity.Op{node(byte(n), 4, 1)}}); err != nil {
			log.Fatal(err)
		}
	}
	if err := ents.Prune(ctx, 3); err != nil {
		log.Fatal(err)
	}
	_, err := ents.At(ctx, 2)
	fmt.Println(errors.Is(err, store.ErrBlockRange))
	// Output: true
}

func ExampleEntities_Load() {
	ctx := context.Background()
	ents, done := temporary(ctx)
	defer done()
	blocks := []entity.Block{{Number: 1, Ops: []entity.Op{node(1, 4, 10)}}, {Number: 5}}
	for range 2 { // the second time there is nothing left to do
		loaded, err := ents.Load(ctx, withoutErrors(blocks), nil)
		fmt.Println(loaded.Blocks, loaded.Skipped, loaded.Head.Number, err)
	}
	// Output:
	// 2 0 5 <nil>
	// 0 2 5 <nil>
}

func withoutErrors(blocks []entity.Block) func(func(entity.Block, error) bool) {
	return func(yield func(entity.Block, error) bool) {
		for b := range slices.Values(blocks) {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// A backup is one stream. Any engine can make a store of it, as varve restore
// does.
func ExampleDB_Backup() {
	ctx := context.Background()
	db, done := temporaryDB(ctx)
	defer done()
	ents, err := db.Entities(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ents.Apply(ctx, entity.Block{Number: 7, Ops: []entity.Op{node(1, 4, 100)}}); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := db.Backup(ctx, &file, nil); err != nil {
		log.Fatal(err)
	}
	other, done := temporaryDB(ctx)
	defer done()
	held, err := other.Restore(ctx, &file, nil)
	fmt.Println(held.Head, held.Layout, err)
	report, err := other.Check(ctx, nil) // against the digests
	fmt.Println(report.Outcome, err)
	// Output:
	// block 7 compact <nil>
	// sound <nil>
}

// A user name may be taken once: the append fails when an event has its tag.
func ExampleEvents_Append() {
	ctx := context.Background()
	events, done := temporaryEvents(ctx)
	defer done()
	name := event.NewTag("username", "ada")
	registered := event.Event{Type: "AccountRegistered", Tags: []event.Tag{name}, Data: []byte(`{"plan":"free"}`)}
	for range 2 {
		positions, err := events.Append(ctx, []event.Event{registered}, event.Unless(event.Typed("AccountRegistered", name)))
		var conflict *event.ConflictError
		if errors.As(err, &conflict) {
			fmt.Println("taken by event", conflict.Position)
			continue
		}
		fmt.Println("registered at", positions, err)
	}
	// Output:
	// registered at [1] <nil>
	// taken by event 1
}

// A decision is made on states that one pass over the events gives, and appended
// under the condition that nothing they are made of has changed meanwhile.
func ExampleEvents_Append_decision() {
	ctx := context.Background()
	events, done := temporaryEvents(ctx)
	defer done()
	course, student := event.NewTag("course", "maths"), event.NewTag("student", "s1")
	_, err := events.Append(ctx, []event.Event{
		{Type: "CourseDefined", Tags: []event.Tag{course}, Data: []byte("1")},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		seats := event.NewProjection(event.Typed("CourseDefined", course), "",
			func(_ string, e *event.Sequenced) string { return string(e.Data) })
		taken := event.NewProjection(event.Typed("StudentSubscribed", course), 0,
			func(n int, _ *event.Sequenced) int { return n + 1 })
		cond, err := event.Project(ctx, events, seats, taken)
		if err != nil {
			log.Fatal(err)
		}
		if fmt.Sprint(taken.State) == seats.State {
			fmt.Println("the course is full; last event", cond.After)
			continue
		}
		positions, err := events.Append(ctx, []event.Event{{Type: "StudentSubscribed", Tags: []event.Tag{course, student}}}, cond)
		fmt.Println("subscribed at", positions, err)
	}
	// Output:
	// subscribed at [2] <nil>
	// the course is full; last event 2
}

// A subscription yields the stored events, and then new ones. A consumer that
// stops goes on behind the last position.
func ExampleEvents_Subscribe() {
	ctx := context.Background()
	events, done := temporaryEvents(ctx)
	defer done()
	add := func(text string) {
		if _, err := events.Append(ctx, []event.Event{{Type: "Said", Data: []byte(text)}}, nil); err != nil {
			log.Fatal(err)
		}
	}
	add("one")
	next := uint64(1)
	for e, err := range events.Subscribe(ctx, event.Of("Said"), next) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Position, string(e.Data))
		if next = e.Position + 1; next > 3 {
			break
		}
		add("and more") // it comes while the loop goes on
	}
	fmt.Println("next time from", next)
	// Output:
	// 1 one
	// 2 and more
	// 3 and more
	// next time from 4
}
