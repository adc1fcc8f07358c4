package bench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	_ "github.com/varvedb/varve/store/sqlite"
)

// handOver is a workload of one's own: a configuration, and a function over a store
// that verifies what it has measured.
type handOver struct {
	Keys []store.Key // of entities that are there
	To   store.Address
	Loop bench.Loop // *testing.B is one
}

// run gives one entity after the other a new owner, each in a block of its own.
func (w handOver) run(ctx context.Context, ents *store.Entities) (bench.Result, error) {
	res := bench.NewResult()
	head, err := ents.Head(ctx)
	if err != nil {
		return res, err
	}
	for w.Loop() {
		key := w.Keys[int(res.Entities)%len(w.Keys)]
		head.Block++
		block := store.Block{Number: head.Block, Ops: []store.Op{{Kind: store.ChangeOwner, Key: key, Owner: w.To}}}
		err := res.Time(func() error {
			_, err := ents.Apply(ctx, block)
			return err
		})
		if err == nil {
			err = w.check(ctx, ents, key)
		}
		if err != nil {
			return res, fmt.Errorf("hand over: %w", err)
		}
		res.Entities++
	}
	return res, nil
}

func (w handOver) check(ctx context.Context, ents *store.Entities, key store.Key) error {
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return err
	}
	defer snap.Close()
	e, err := snap.Get(ctx, key)
	if err == nil && e.Owner != w.To {
		err = fmt.Errorf("%w: entity %s belongs to %s", bench.ErrMismatch, key, e.Owner)
	}
	return err
}

// A workload of one's own on a data set that is generated, built once, and copied for
// each run. In a benchmark of go test the loop is the *testing.B.
func Example_workload() {
	dir, err := os.MkdirTemp("", "varve-example-")
	if err == nil {
		err = example(context.Background(), dir)
	}
	fmt.Println("errors:", errors.Join(err, os.RemoveAll(dir)))
	// Output:
	// 200 entities, 50 changed hands, rate measured: true
	// errors: <nil>
}

func example(ctx context.Context, dir string) (err error) {
	cache, err := bench.OpenCache(dir) // "" is the user's
	if err != nil {
		return err
	}
	data := bench.Dataset{
		Engine: bench.Engine{Name: "sqlite"}, Layout: "compact",
		Profile: bench.Minimal, Gen: bench.GenOptions{Entities: 200, Seed: 1},
	}
	cp, err := cache.OpenCopy(ctx, data, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	work := handOver{To: store.Address{1}, Loop: bench.Times(50)}
	for b, err := range bench.Blocks(data.Profile, data.Gen) {
		if err != nil {
			return err
		}
		for i := range b.Ops {
			work.Keys = append(work.Keys, b.Ops[i].Key)
		}
	}
	res, err := work.run(ctx, cp.Entities)
	measured := slices.ContainsFunc(res.Metrics(), func(m bench.Metric) bool { return m.Unit == "ent/s" && m.Value > 0 })
	fmt.Println(len(work.Keys), "entities,", res.Entities, "changed hands, rate measured:", measured)
	return err
}
