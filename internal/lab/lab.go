// Package experiment is the catalogue of what the project measures: for each
// experiment its question, the figure that an earlier measurement found, and a
// plan: the configurations that a lab measures on one engine, a record for each.
//
// The workloads themselves are in package bench and below it; here is which of them,
// with which sizes.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Options are what all experiments share. Every one of them is part of what a
// result depends on and is in its record or manifest. Those with a help are flags of
// varve run.
type Options struct {
	Scale   float64       `json:"scale" help:"Part of the sizes of the user's documents; 1 is theirs." default:"0.05"`
	Phase   time.Duration `json:"phase" help:"Length of a timed phase." default:"10s"`
	Seed    uint64        `json:"seed" help:"Of data and of the order of operations." default:"1"`
	Layouts []string      `json:"layouts" help:"Layouts to measure instead of each experiment's own."`
	Sizes   []float64     `json:"sizes,omitempty" help:"Scales of the growth experiment D5; a quarter, once and four times --scale when not given."`
	Rates   []float64     `json:"rates,omitempty" help:"Rows a second: of the sustained writes D1, 0 for as fast as possible, 6000 and 0 when not given; of the chain that the node H3 follows, 0 for none, 6000 when not given."`
	Loaded  float64       `json:"loaded" help:"Part of the base profile that a store holds before commits begin: with less, more is left to commit." default:"0.6"`
	Bare    bool          `json:"bare,omitempty" help:"Give the base profile the smallest payloads, for sizes that would not fit."`
	Retry   bool          `json:"retry,omitempty" help:"Do again what an earlier run of the same command has failed at."`
	InPlace bool          `json:"in_place,omitempty" help:"Use data sets themselves and no copies, which takes half of the disk: those that were changed are built again."`

	Block      int               `json:"block,omitempty" kong:"-"` // of the run, from 0
	Again      bool              `json:"again,omitempty" kong:"-"` // one configuration only, as the second of a pair of the same
	Off        string            `json:"off,omitempty" kong:"-"`   // why the machine is not as it was; for the notes of records
	Over       bool              `json:"over,omitempty" kong:"-"`  // measure again what the set has
	Durability driver.Durability `json:"durability" kong:"-"`
	Memory     int64             `json:"memory" kong:"-"` // bytes of the engine's process, with the page cache

	Permissions *PermissionOptions `json:"permissions,omitempty" kong:"-"`
	Social      *SocialOptions     `json:"social,omitempty" kong:"-"`
	First       *FirstOptions      `json:"first,omitempty" kong:"-"`
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
	added    int64  // memory that was added to the budget

	blockRows map[float64]float64 // rows of a block of what comes after a scale's loaded part
}

// Run runs an experiment: its variants in the random order that the seed, the block,
// the experiment and the engine give. It returns the keys of the records that the set
// has of it then.
func (l *Lab) Run(ctx context.Context, e Experiment) (keys []string, err error) {
	l.of = &e
	l.Cache.InPlace = l.InPlace
	defer func() {
		if err = errors.Join(err, l.close()); err != nil {
			err = fmt.Errorf("%s: %w", e.ID, err)
		}
	}()
	list, err := e.plan(l)
	if err != nil {
		return nil, err
	}
	m, err := bench.DescribeEngine(l.Engine.Name, l.storeOptions(), l.Cache.Root())
	if err == nil {
		l.manifest, err = l.describe(m)
	}
	if err != nil {
		return nil, err
	}
	if !e.Ordered {
		Shuffle(list, l.Seed, l.Block, e.ID, l.Engine.Label())
	}
	for i := range list {
		key, err := l.run(ctx, &list[i])
		if err != nil {
			return nil, err
		}
		if key == "" {
			continue
		}
		if keys = append(keys, key); l.Again {
			break
		}
	}
	return keys, nil
}

// Shuffle puts a list into the random order that a seed and what it is for give.
func Shuffle[T any](list []T, seed uint64, of ...any) {
	h := fnv.New64a()
	fmt.Fprint(h, of...)
	rand.New(rand.NewPCG(seed, h.Sum64())).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
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

// aside makes what is not measured: a data set, and what answers are checked by. What stays
// of that in this process is beside the budget, which is the engine's: it grows with the
// data, and would leave a large store less than a small one. Twice what is in use is added,
// since the garbage collector lets it grow so far.
func (l *Lab) aside(prepare func() error) error {
	if err := memlimit.Resize(memlimit.None); err != nil {
		return err
	}
	err := prepare()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.added = 2 * int64(m.HeapAlloc)
	return errors.Join(err, memlimit.Resize(l.Memory+l.added))
}

// describe stores a manifest, with the budget of the engine alone.
func (l *Lab) describe(m bench.Manifest) (key string, err error) {
	if m.Memory.Bytes > 0 {
		m.Memory.Bytes -= l.added
	}
	return l.Set.Manifest(m)
}

// config begins the configuration of a record.
func (l *Lab) config(pairs ...string) result.Config {
	c := result.Config{{Key: "engine", Value: l.Engine.Label()}}
	for i := 0; i+1 < len(pairs); i += 2 {
		c = c.With(pairs[i], pairs[i+1])
	}
	return c
}

// on begins the configuration of what is measured with a layout and a profile.
func (l *Lab) on(layout, profile string, more ...string) result.Config {
	return l.config(append([]string{"layout", layout, "profile", profile, "durability", string(l.Durability)}, more...)...)
}

// onBase begins that of what is measured on the base profile.
func (l *Lab) onBase(layout string, more ...string) result.Config {
	return l.on(layout, l.profile(), append([]string{"scale", ftoa(l.Scale)}, more...)...)
}

// layouts returns those that were asked for, or else others, or the experiment's own.
func (l *Lab) layouts(others ...string) []string {
	for _, list := range [][]string{l.Layouts, others} {
		if len(list) > 0 {
			return list
		}
	}
	return l.of.Layouts
}

// close closes what stays open from one variant to the next.
func (l *Lab) close() (err error) {
	for _, f := range slices.Backward(l.closing) {
		err = errors.Join(err, f())
	}
	l.closing = nil
	return err
}

// variant is a configuration with the way to measure it, which makes what it needs
// and leaves nothing to others. What it fails with is in the record, and so is what it
// had measured before; only an end of ctx or of the set's file ends the experiment.
type variant struct {
	name   string // of the record
	config result.Config
	run    func(ctx context.Context, r *result.Record) error
}

// run measures a variant that the set does not have yet in this block, and stores a
// record of it. It returns the record's key, "" where the set has none.
func (l *Lab) run(ctx context.Context, v *variant) (key string, err error) {
	r := &result.Record{Experiment: l.of.ID, Name: v.name, Config: v.config, Repeat: l.Block, Manifest: l.manifest}
	if l.Again {
		r.Config = r.Config.With(result.AAKey, "2")
	}
	key = r.Key()
	r.Over = l.Over && l.Set.Has(key, r.Repeat)
	if l.Set.Has(key, r.Repeat) && !r.Over && !(l.Retry && l.Set.Failed(key, r.Repeat)) {
		return key, nil
	}
	if l.Off != "" {
		r.Notes = append(r.Notes, "probe=off: "+l.Off)
	}
	l.Log("%s, block %d", key, l.Block+1)
	r.Started = time.Now().UTC()
	watched := memlimit.Watch()
	err = v.run(ctx, r)
	r.Took = time.Since(r.Started)
	if peak, killed := watched(); killed > 0 {
		err = errors.Join(err, fmt.Errorf("out of the memory budget, for which the kernel killed %d processes; see --memory", killed))
	} else if peak > 0 {
		put(r, float64(peak)/1e6, "memory-peak-MB")
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		l.Log("%s: %v", key, err)
		r.Error = err.Error()
	}
	if errors.Is(err, errSkip) {
		return "", nil
	}
	if text := glance(r.Metrics); err == nil && text != "" {
		l.Log("  %s", text)
	}
	return key, l.Set.Append(r)
}

// glance is what there is to see of a record before everything is measured: medians and rates.
func glance(metrics []result.Metric) string {
	var parts []string
	for _, m := range metrics {
		if strings.HasSuffix(m.Unit, "p50-ms") || strings.HasSuffix(m.Unit, "/s") || m.Unit == "qps" {
			parts = append(parts, m.Unit+" "+strconv.FormatFloat(math.Round(m.Value*1000)/1000, 'f', -1, 64))
		}
	}
	return strings.Join(parts, ", ")
}

// errSkip: the engine does not have what a configuration asks for.
var errSkip = errors.New("skipped")

func itoa(n int) string { return strconv.Itoa(n) }

func ftoa(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
