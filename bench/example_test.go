package bench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/sqlite"
)

// handOver is a user's own workload: a configuration, and a function over a
// store that verifies the results.
type handOver struct {
	Keys []entity.Key // of entities that are there
	To   entity.Address
}

// run gives one entity after the other a new owner, each in a separate block.
func (w handOver) run(ctx context.Context, ents *store.Entities, loop pace.Config) (res bench.Result, err error) {
	head, err := ents.Head(ctx)
	if err != nil {
		return res, err
	}
	res.Outcome, err = pace.Loop(ctx, loop, func(ctx context.Context, s *pace.Step) error {
		key := w.Keys[int(s.N)%len(w.Keys)]
		head.Number++
		block := entity.Block{Number: head.Number, Ops: []entity.Op{{Kind: entity.ChangeOwner, Key: key, Owner: w.To}}}
		_, err := ents.Apply(ctx, block)
		s.Stop()
		if err == nil {
			err = w.check(ctx, ents, key)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("hand over: %w", err)
	}
	res.Entities = uint64(res.Count)
	return res, err
}

func (w handOver) check(ctx context.Context, ents *store.Entities, key entity.Key) error {
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
// each run. In a benchmark of go test, More of the loop is b.Loop.
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
	work := handOver{To: entity.Address{1}}
	for b, err := range bench.Blocks(data.Profile, data.Gen) {
		if err != nil {
			return err
		}
		for i := range b.Ops {
			work.Keys = append(work.Keys, b.Ops[i].Key)
		}
	}
	res, err := work.run(ctx, cp.Entities, pace.Config{N: 50})
	measured := slices.ContainsFunc(res.Metrics(), func(m bench.Metric) bool { return m.Unit == "ent/s" && m.Value > 0 })
	fmt.Println(len(work.Keys), "entities,", res.Entities, "changed hands, rate measured:", measured)
	return err
}
