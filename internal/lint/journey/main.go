// Journey runs one use of a new store, and writes the coverage counters of only
// that use into a directory. A test builds it with go build -cover.
//
//	journey block|query|append URL DIRECTORY
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/coverage"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/query"
	_ "github.com/varvedb/varve/store/sqlite"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: journey block|query|append URL DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "journey:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, journey, url, counters string) error {
	if err := fill(ctx, url); err != nil {
		return err
	}

	// Open only what the journey uses, because background work of other parts
	// would run in some journeys and not in others.
	db, err := store.Open(ctx, url, &store.Options{ReadOnly: journey == "query"})
	if err != nil {
		return err
	}
	defer db.Close()
	var run func() error
	if journey == "append" {
		run, err = appending(ctx, db)
	} else {
		run, err = applyingOrQuerying(ctx, db, journey)
	}
	if err != nil {
		return err
	}

	// Run the journey with reset counters.
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(counters), coverage.WriteCountersDir(counters))
}

// filled is the number of blocks in the store.
const filled = 64

// fill creates the store, so that a journey does not create tables.
func fill(ctx context.Context, url string) error {
	db, err := store.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	ents, err := db.Entities(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := db.Events(ctx, nil); err != nil {
		return err
	}
	for number := range uint64(filled) {
		if _, err := ents.Apply(ctx, block(number)); err != nil {
			return err
		}
	}
	return ents.Flush(ctx)
}

// appending returns a conditional append, which follows one that has read the
// end of the log.
func appending(ctx context.Context, db *store.DB) (func() error, error) {
	events, err := db.Events(ctx, nil)
	if err != nil {
		return nil, err
	}
	course := event.Tag{Key: "course", Value: "c1"}
	positions, err := events.Append(ctx, []event.Event{{Type: "Opened", Tags: []event.Tag{course}}}, nil)
	if err != nil {
		return nil, err
	}
	return func() error {
		cond := &event.Condition{FailIfEventsMatch: event.Tagged(course), After: positions[0]}
		_, err := events.Append(ctx, []event.Event{{Type: "Joined", Tags: []event.Tag{course}}}, cond)
		return err
	}, nil
}

// applyingOrQuerying returns a block with its merge, or a query at a past
// block.
func applyingOrQuerying(ctx context.Context, db *store.DB, journey string) (func() error, error) {
	ents, err := db.Entities(ctx, nil)
	if err != nil {
		return nil, err
	}
	switch journey {
	case "block":
		return func() error { return applyAndMerge(ctx, ents, filled) }, nil
	case "query":
		return func() error { return queryPast(ctx, ents, filled/2) }, nil
	}
	return nil, fmt.Errorf("there is no journey %q", journey)
}

// block returns a block that creates sixteen entities and updates as many of
// the previous block.
func block(number uint64) entity.Block {
	b := entity.Block{Number: number}
	for i := range byte(16) {
		attributes := map[string]string{"type": "node", "place": fmt.Sprint(i % 4)}
		numbers := map[string]uint64{"size": uint64(i)}
		b.Ops = append(b.Ops, entity.Op{
			Kind: entity.Create, Key: entity.Key{byte(number), i}, Owner: entity.Address{1}, BTL: 1000, OpIndex: uint32(i),
			StringAttributes: attributes, NumericAttributes: numbers, Content: []byte("content"),
		})
		if number > 0 {
			b.Ops = append(b.Ops, entity.Op{
				Kind: entity.Update, Key: entity.Key{byte(number - 1), i}, Owner: entity.Address{1}, BTL: 1000, OpIndex: uint32(16 + i),
				StringAttributes: attributes, NumericAttributes: numbers, Content: []byte("changed"),
			})
		}
	}
	return b
}

// applyAndMerge applies a block, and lets the store merge it in the background.
func applyAndMerge(ctx context.Context, ents *store.Entities, number uint64) error {
	if _, err := ents.Apply(ctx, block(number)); err != nil {
		return err
	}
	for {
		backlog, err := ents.Backlog(ctx)
		if err != nil || backlog == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// queryPast reads a page of a query at a past block.
func queryPast(ctx context.Context, ents *store.Entities, at uint64) error {
	expr, err := query.Parse(`type = "node" && size > 3 && place != "2"`)
	if err != nil {
		return err
	}
	snap, err := ents.At(ctx, at)
	if err != nil {
		return err
	}
	defer snap.Close()
	found := 0
	for _, err := range snap.Query(ctx, expr, &store.QueryOptions{Limit: 10}) {
		if err != nil {
			return err
		}
		found++
	}
	if found != 10 {
		return fmt.Errorf("found %d entities, not 10", found)
	}
	return nil
}
