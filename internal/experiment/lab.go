package experiment

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Options are what all experiments share. Every one of them is part of what a
// result depends on and is in its record or manifest.
type Options struct {
	Scale      float64           `json:"scale"`           // 1: the sizes of the user's documents
	Phase      time.Duration     `json:"phase"`           // length of a timed phase
	Block      int               `json:"block,omitempty"` // of the run, from 0
	Again      bool              `json:"again,omitempty"` // one configuration only, as the second of a pair of the same
	Seed       uint64            `json:"seed"`
	Durability driver.Durability `json:"durability"`
	Memory     int64             `json:"memory"`          // bytes of the engine's process, with the page cache
	Layouts    []string          `json:"layouts"`         // instead of an experiment's own
	Sizes      []float64         `json:"sizes,omitempty"` // scales of the growth experiment, instead of parts of Scale
	Rates      []float64         `json:"rates,omitempty"` // rows a second of sustained writes, 0 for as fast as possible, instead of D1's own
	Bare       bool              `json:"bare,omitempty"`  // the base profile with the smallest payloads
	Loaded     float64           `json:"loaded"`          // part of the base profile that a store holds before commits begin
	Retry      bool              `json:"retry,omitempty"` // do again what has failed

	InPlace bool `json:"in_place,omitempty"` // data sets themselves are used instead of copies

	Permissions *PermissionOptions `json:"permissions,omitempty"`
	Social      *SocialOptions     `json:"social,omitempty"`
	First       *FirstOptions      `json:"first,omitempty"`
}

// Lab is where an experiment runs: one engine, in a process of its own.
type Lab struct {
	Options
	Engine bench.Engine
	Cache  *bench.Cache

	// Set takes the records.
	Set *result.Writer

	// Log is called with what is being measured.
	Log func(format string, args ...any)

	of       *Experiment
	closing  []func() error
	manifest string // of records whose store was not open
}

// Run runs an experiment: its variants in the random order that the seed, the block,
// the experiment and the engine give.
func (l *Lab) Run(ctx context.Context, e Experiment) (err error) {
	l.of = &e
	l.Cache.InPlace = l.InPlace
	defer func() {
		if err = errors.Join(err, l.close()); err != nil {
			err = fmt.Errorf("%s: %w", e.ID, err)
		}
	}()
	list, err := e.plan(l)
	if err != nil {
		return err
	}
	if err := l.describeEngine(); err != nil {
		return err
	}
	if !e.Ordered {
		Shuffle(list, l.Seed, l.Block, e.ID, l.Engine.Name)
	}
	for i := range list {
		measured, err := l.run(ctx, &list[i])
		if err != nil {
			return err
		}
		if measured && l.Again {
			break
		}
	}
	return nil
}

// Shuffle puts a list into the random order that a seed and what it is for give.
func Shuffle[T any](list []T, seed uint64, of ...any) {
	h := fnv.New64a()
	fmt.Fprint(h, of...)
	rand.New(rand.NewPCG(seed, h.Sum64())).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// describeEngine stores the manifest of runs that fail before their store is open.
func (l *Lab) describeEngine() error {
	m, err := bench.DescribeEngine(l.Engine.Name, l.storeOptions(), l.Cache.Root())
	if err == nil {
		l.manifest, err = l.Set.Manifest(m)
	}
	return err
}

// scaled returns a size of the user's documents at the lab's scale, at least a
// minimum below which nothing can be seen.
func (l *Lab) scaled(size, minimum int) int {
	return max(int(float64(size)*l.Scale), minimum)
}

// storeOptions are those of every store that the lab opens.
func (l *Lab) storeOptions() *store.Options {
	return &store.Options{Durability: l.Durability, Memory: memlimit.Cache(l.Memory)}
}

// config begins the configuration of a record.
func (l *Lab) config(pairs ...string) result.Config {
	c := result.Config{{Key: "engine", Value: l.Engine.Name}}
	for i := 0; i+1 < len(pairs); i += 2 {
		c = c.With(pairs[i], pairs[i+1])
	}
	return c
}

// close closes what stays open from one variant to the next.
func (l *Lab) close() (err error) {
	for _, f := range slices.Backward(l.closing) {
		err = errors.Join(err, f())
	}
	l.closing = nil
	return err
}

// run measures a variant that the set does not have yet in this block, and stores a
// record of it. It tells whether the set has one.
func (l *Lab) run(ctx context.Context, v *variant) (measured bool, err error) {
	r := &result.Record{Experiment: l.of.ID, Name: v.name, Config: v.config, Repeat: l.Block, Manifest: l.manifest}
	if l.Again {
		r.Config = r.Config.With(result.AAKey, "2")
	}
	if l.Set.Has(r.Key(), r.Repeat) && !(l.Retry && l.Set.Failed(r.Key(), r.Repeat)) {
		return true, nil
	}
	l.Log("%s, block %d", r.Key(), l.Block+1)
	r.Started = time.Now().UTC()
	watched := memlimit.Watch()
	err = v.run(ctx, r)
	r.Took = time.Since(r.Started)
	if used := watched(); used.Killed > 0 {
		err = errors.Join(err, fmt.Errorf("out of the memory budget, for which the kernel killed %d processes; see --memory", used.Killed))
	} else if used.Peak > 0 {
		put(r, float64(used.Peak)/1e6, "memory-peak-MB")
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		l.Log("%s: %v", r.Key(), err)
	}
	if errors.Is(err, errSkip) {
		return false, nil
	}
	if err != nil {
		r.Error = err.Error()
	}
	return true, l.Set.Append(r)
}

// errSkip: the engine does not have what a configuration asks for.
var errSkip = errors.New("skipped")

func itoa(n int) string { return strconv.Itoa(n) }

func ftoa(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
