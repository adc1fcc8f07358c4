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

	experiment string
	variants   []variant
	closing    []func() error
	shared     *shared // that is open
	manifest   string  // of records whose store was not open
}

// variant is a configuration with the way to measure it.
type variant struct {
	name   string
	config result.Config
	run    func(ctx context.Context, r *result.Record) error
}

// Run runs an experiment: its variants in the random order that the seed, the block,
// the experiment and the engine give.
func (l *Lab) Run(ctx context.Context, e Experiment) (err error) {
	l.experiment, l.variants, l.closing = e.ID, nil, nil
	l.Cache.InPlace = l.InPlace
	defer func() {
		for _, f := range slices.Backward(l.closing) {
			err = errors.Join(err, f())
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", e.ID, err)
		}
	}()
	if err := e.Run(ctx, l); err != nil {
		return err
	}
	if err := l.describeEngine(ctx); err != nil {
		return err
	}
	if !e.Ordered {
		Shuffle(l.variants, l.Seed, l.Block, e.ID, l.Engine.Name)
	}
	for i := range l.variants {
		measured, err := l.run(ctx, &l.variants[i])
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
func (l *Lab) describeEngine(ctx context.Context) error {
	m, err := bench.DescribeEngine(ctx, l.Engine.Name, l.storeOptions(), l.Cache.Root())
	if err == nil {
		l.manifest, err = l.Set.Manifest(m)
	}
	return err
}

// layouts returns those that were asked for, or an experiment's own.
func (l *Lab) layouts(own ...string) []string {
	if len(l.Layouts) > 0 {
		return l.Layouts
	}
	return own
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

// measure adds a variant, which f measures when the experiment's own function has
// returned: so f makes what it needs and leaves nothing to it. What f fails with is
// in the record, and so is what it had measured before; only an end of ctx or of the
// set's file ends the experiment.
func (l *Lab) measure(_ context.Context, name string, config result.Config, f func(ctx context.Context, r *result.Record) error) error {
	l.variants = append(l.variants, variant{name, config, f})
	return nil
}

// atEnd adds what is closed when the experiment's variants have run.
func (l *Lab) atEnd(f func() error) { l.closing = append(l.closing, f) }

// run measures a variant that the set does not have yet in this block, and stores a
// record of it. It tells whether the set has one.
func (l *Lab) run(ctx context.Context, v *variant) (measured bool, err error) {
	r := &result.Record{Experiment: l.experiment, Name: v.name, Config: v.config, Repeat: l.Block, Manifest: l.manifest}
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
		r.Metrics = append(r.Metrics, result.Metric{Value: float64(used.Peak) / 1e6, Unit: "memory-peak-MB"})
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

// supports skips a configuration whose durability the engine does not have.
func (l *Lab) supports(d driver.Durability) error {
	linked, ok := driver.Lookup(l.Engine.Name)
	if ok && !slices.Contains(linked.Capabilities.Durabilities, d) {
		return fmt.Errorf("%w: engine %s has no durability %s", errSkip, l.Engine.Name, d)
	}
	return nil
}

// add adds a workload's latencies and figures to a record.
func add(r *result.Record, kind string, res bench.Result) {
	r.Metrics = append(r.Metrics, res.Metrics()...)
	r.Latencies = append(r.Latencies, res.Latency.Distribution(kind))
}

func itoa(n int) string { return strconv.Itoa(n) }

func ftoa(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
