// Package lab is the catalogue of the project's experiments and the code to
// measure them. An experiment has a question, published figures of others, a
// plan (the configurations that are measured on one engine, each giving a line
// of results) and the tables that show the answer.
//
// The workloads are in package bench and its subpackages; this package chooses
// among them and sets their sizes. go test -bench, varve run and varve compare
// all measure these entries.
package lab

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
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Options are the options of all experiments. Settings that affect a result are
// in its name or in the head of its file. Fields with a help tag are flags of
// varve run.
type Options struct {
	Scale   float64           `above:"0" max:"1000" json:"scale" help:"Part of the sizes that Arkiv's documents ask for; 1 is theirs." default:"0.05"`
	Phase   time.Duration     `min:"1ms" max:"720h" json:"phase" help:"Length of a timed phase." default:"10s"`
	Seed    uint64            `any:"" json:"seed" help:"Seed of the data, and with the number of the repeat that of questions, order and times." default:"1"`
	Layouts []string          `json:"layouts" help:"Layouts to measure instead of each experiment's own."`
	Sizes   []float64         `above:"0" max:"1000" json:"sizes,omitempty" help:"Scales at which C1, C4, D1 and I3 measure, --scale when not given, and the growth experiments B1 and D5, by default a quarter, once and four times --scale."`
	Rates   []float64         `min:"0" max:"1000000000" json:"rates,omitempty" help:"Rows a second. D1: 0 is as fast as possible; 6000 and 0 when not given. I3: 0 is none; 0 to 50000 when not given. H3, of the chain: 0 is none; 6000 when not given. Requests a second of G2: 100, 1000 and 10000 when not given."`
	Only    map[string]string `placeholder:"KEY=VALUES" json:"only,omitempty" help:"Configurations to measure, by the keys and values of their names, as clients=10 or 'mix=A B'. Those without the key are left out. Repeat the flag for other keys."`
	Source  string            `store:"" placeholder:"SRC" json:"source,omitempty" help:"Data of your own in place of the base profile: a block tar, an Arkiv SQLite database, or the URL of a store. Experiments that need the base profile are left out. --scale is how many times its entities, rounded up."`

	Probe bool `json:"probe,omitempty" help:"Check the machine before each experiment on an engine, and note in the results when others use it." default:"true" negatable:""`

	Repeat     int               `json:"repeat,omitempty" kong:"-"` // of the measuring, from 0
	Sitting    string            `json:"sitting" kong:"-"`          // one run of the command, in which engines and layouts alternate
	Durability driver.Durability `json:"durability" kong:"-"`
	Memory     int64             `json:"memory" kong:"-"` // bytes of the engine's process, with the page cache

	First *FirstOptions `json:"first,omitempty" kong:"-"`
}

// Lab runs experiments on one engine, in a separate process.
type Lab struct {
	Options
	Engine bench.Engine
	Cache  *bench.Cache

	// Log is called with the configuration that is about to be measured.
	Log func(format string, args ...any)

	// Renew, if not nil, replaces this process by a new one that continues with
	// the remaining work. It is called when memory of earlier configurations or
	// a load would not be freed.
	Renew func() error

	of        *Experiment
	disturbed string         // why the machine's measurements cannot be relied on
	manifest  bench.Manifest // of this program and machine
	added     int64          // memory added to the budget
	used      bool           // this process has measured or loaded something
}

// Plan returns the configurations of an experiment in measuring order.
func (l *Lab) Plan(e Experiment) ([]Variant, error) {
	l.of = &e
	l.roundScales()
	l.Cache.InPlace = !e.Changes
	list, err := l.chosen(e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.ID, err)
	}
	reference := func(v Variant) bool { return v.Keys.Get("layout") == schemas.DefaultLayout }
	Alternate(list, l.Repeat, reference, l.Seed, l.Sitting, e.ID, l.Engine.Label())
	return list, nil
}

// chosen returns the requested configurations of an experiment, in the plan's
// order.
func (l *Lab) chosen(e Experiment) ([]Variant, error) {
	all, err := e.Plan(l)
	list := slices.DeleteFunc(slices.Clone(all), func(v Variant) bool { return !v.Keys.of(l.Only) })
	if len(list) == 0 && len(all) > 0 {
		return nil, fmt.Errorf("--only leaves nothing of what is named like %s", all[0].Keys)
	}
	return list, err
}

// describe returns the manifest of everything that this lab measures.
func (l *Lab) describe() (bench.Manifest, error) {
	m, err := bench.DescribeHost(l.Cache.Root())
	if linked, ok := driver.Lookup(l.Engine.Name); ok {
		m.OfEngine(linked.Info)
	}
	m.Set(sittingKey, l.Sitting)
	m.Set("phase", l.Phase.String())
	m.Set("data-seed", strconv.FormatUint(l.Seed, 10))
	if l.Source != "" {
		m.Set("source", l.Source)
	}
	m.Set(machineOff, l.disturbed)
	return m, err
}

// Run measures the lines of an experiment that a set lacks, and adds them. The
// failure of a configuration is recorded in the set too; Run itself fails only
// when ctx ends or the set cannot be written.
func (l *Lab) Run(ctx context.Context, e Experiment, set *Set) error {
	list, err := l.Plan(e)
	if err != nil {
		return err
	}
	host := bench.HostID()
	list = slices.DeleteFunc(list, func(v Variant) bool {
		return set.Done(e.ID, v.line(), l.Repeat, host, l.Sitting)
	})
	if len(list) > 0 && l.Probe {
		if err := l.Look(ctx, set); err != nil {
			return err
		}
	}
	for i := range list {
		v := &list[i]
		l.Log("%s %s, repeat %d", e.ID, v.line(), l.Repeat+1)
		r := l.Measure(ctx, v)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case r.Err != nil:
			l.Log("  %v", r.Err)
		default:
			l.Log("  %s", r.glance())
		}
		if errors.Is(r.Err, ErrSkip) {
			continue
		}
		if err := set.Add(e.ID, l.Engine.Label(), l.Sitting, r); err != nil {
			return err
		}
	}
	return nil
}

// Run measures a variant and adds the figures to the trial's record.
type Run func(t *Trial, ctx context.Context) error

// Variant is one configuration and the function that measures it. It makes its
// own data and leaves none for others.
type Variant struct {
	Name string // name of its result lines
	Keys Keys
	Cost
	Run Run

	// Each, if not nil, passes the workload to f as single operations, with the
	// store, for a benchmark of go test. Variants without it run at a rate, or
	// their figures are not per operation.
	Each func(ctx context.Context, f func(*bench.Copy, *bench.Operations) error) error
}

// Cost is the estimated time and disk space of measuring a variant, for
// planning.
type Cost struct {
	Phases float64 // that are timed
	Rows   float64 // rows written, in addition to phases
	Set    float64 // rows of the data set, which is loaded once
}

// baseRows is the number of rows of the base profile at scale 1.
const baseRows = 20_000_000

// BaseCost estimates phases on the base profile at a scale, plus loading it
// loads times.
func BaseCost(scale, phases, loads float64) Cost {
	rows := baseRows * scale
	return Cost{Phases: phases, Rows: loads * rows, Set: rows}
}

func (v *Variant) line() string { return v.Name + "/" + v.Keys.String() }

// Measure measures a variant once. On an error the record has the error and the
// figures measured before it.
func (l *Lab) Measure(ctx context.Context, v *Variant) *Record {
	if l.manifest == nil {
		var err error
		if l.manifest, err = l.describe(); err != nil {
			return &Record{Name: v.Name, Keys: v.Keys, Err: err}
		}
	}
	r := &Record{Name: v.Name, Keys: v.Keys, Manifest: l.manifest}
	r.Manifest.Set("repeat", strconv.Itoa(l.Repeat+1))
	r.Manifest.Set("seed", strconv.FormatUint(l.questionSeed(), 10))
	r.Manifest.Set("begun", time.Now().UTC().Format(time.RFC3339))
	watched := memlimit.Watch()
	t := l.trial(r)
	r.Err = v.Run(t, pace.WithActivity(ctx, t.activity))
	r.dropSpare(l.of)
	l.used = true
	if killed := watched(); killed > 0 {
		r.Err = errors.Join(r.Err, fmt.Errorf("the kernel killed %d processes, which needed more memory than --memory gives", killed))
	}
	return r
}

// questionSeed is the seed of the questions, their order and their times. It differs
// in each repeat and sitting, but is the same for all engines and layouts.
func (l *Lab) questionSeed() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, l.Sitting)
	return splitmix.Scramble(l.Seed + splitmix.Scramble(h.Sum64()+uint64(l.Repeat)+1))
}

// Alternate puts a list into the order of a repeat. Two repeats form a round: the
// reference, the others, the others backwards, the reference (ABBA). A steady
// drift of the machine then affects all equally on average. The order of the
// others is random and different in each round.
func Alternate[T any](list []T, repeat int, reference func(T) bool, seed uint64, of ...any) {
	shuffle(list, seed, append(of, repeat/2)...)
	slices.SortStableFunc(list, func(a, b T) int {
		if reference(a) == reference(b) {
			return 0
		}
		if reference(a) {
			return -1
		}
		return 1
	})
	if repeat%2 == 1 {
		slices.Reverse(list)
	}
}

// shuffle shuffles a list, depending on a seed and a purpose.
func shuffle[T any](list []T, seed uint64, of ...any) {
	h := fnv.New64a()
	fmt.Fprint(h, of...)
	rand.New(rand.NewPCG(seed, h.Sum64())).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// Scaled returns a size of the user's documents at the lab's scale, at least a
// minimum below which the effect would not show.
func (l *Lab) Scaled(size, minimum int) int {
	return max(int(float64(size)*l.Scale), minimum)
}

// StoreOptions are the options of every store that the lab opens.
func (l *Lab) StoreOptions() *store.Options {
	return &store.Options{Durability: l.Durability, Memory: memlimit.Cache(l.Memory)}
}

// Aside runs unmeasured preparations: data sets, and the checks of answers. The
// memory that they keep in this process is added to the engine's budget,
// because it grows with the data, and a large store would otherwise get less
// than a small one. Twice the used memory is added, because the garbage
// collector lets the heap grow that far.
func (l *Lab) Aside(prepare func() error) error {
	debug.SetMemoryLimit(math.MaxInt64)
	if err := memlimit.Resize(memlimit.None); err != nil {
		return err
	}
	err := prepare()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return errors.Join(err, l.add(2*int64(m.HeapAlloc)))
}

// smallHeap is a heap size below which the collector's default limit is kept.
const smallHeap = 256 << 20

// add adds room for this process's heap to the budget. Unless the heap is
// small, it is limited to that room and a quarter of the budget, because the
// collector would otherwise let it grow to twice the used memory, at the
// engine's expense.
func (l *Lab) add(room int64) error {
	l.added = room
	debug.SetMemoryLimit(max(room+l.Memory/4, l.Memory/2, smallHeap))
	return memlimit.Resize(l.Memory + room)
}

// KeysOf starts the keys of a line with the engine.
func (l *Lab) KeysOf(pairs ...string) Keys {
	k := Keys{{"engine", l.Engine.Label()}}
	for i := 0; i+1 < len(pairs); i += 2 {
		k = k.With(pairs[i], pairs[i+1])
	}
	return k
}

// On starts the keys of a line with a layout and a profile.
func (l *Lab) On(layout, profile string, more ...string) Keys {
	return l.KeysOf(append([]string{"layout", layout, "profile", profile, "durability", string(l.Durability)}, more...)...)
}

// OnBase starts the keys of a line on the base profile or the source, at a
// scale.
func (l *Lab) OnBase(layout string, scale float64, more ...string) Keys {
	return l.On(layout, l.profile(), append([]string{"scale", Ftoa(scale)}, more...)...)
}

// orDefault returns the list, or the others if it is empty.
func orDefault[T any](list []T, others ...T) []T {
	if len(list) > 0 {
		return list
	}
	return others
}

// scales are the requested sizes, or the lab's scale alone.
func (l *Lab) scales() []float64 { return orDefault(l.Sizes, l.Scale) }

// across plans a variant for each layout and each of the values.
func across[T any](layouts []string, values []T, plan func(layout string, value T) Variant) (list []Variant, _ error) {
	for _, layout := range layouts {
		for _, value := range values {
			list = append(list, plan(layout, value))
		}
	}
	return list, nil
}

// RatesOr returns the requested write rates, or else others.
func (l *Lab) RatesOr(others ...float64) []float64 { return orDefault(l.Rates, others...) }

// LayoutsOr returns the requested layouts, or else others, or the experiment's
// layouts.
func (l *Lab) LayoutsOr(others ...string) []string {
	return orDefault(orDefault(l.Layouts, others...), l.of.Layouts...)
}

// ErrSkip: the engine lacks something that the configuration needs.
var ErrSkip = errors.New("skipped")

func itoa(n int) string { return strconv.Itoa(n) }

// Ftoa formats a number as in keys.
func Ftoa(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// machine is the experiment that tests the machine; it runs before each other
// experiment on an engine.
const machine = "M1"

// machineOff is the configuration line that records a disturbed machine.
// Results below it are kept, but marked.
const machineOff = "machine-off"

// Look tests the machine for a second and adds the figures to the set. If the
// machine is disturbed, it records the reason for the measurements that follow.
func (l *Lab) Look(ctx context.Context, set *Set) error {
	var m probe.Machine
	err := l.Aside(func() (err error) { m, err = probe.Look(ctx, l.Cache.Root()); return err })
	if err != nil {
		return err
	}
	if l.disturbed = m.Off(); l.disturbed != "" {
		l.Log("the results are marked †: %s", l.disturbed)
	}
	if l.manifest, err = l.describe(); err != nil {
		return err
	}
	r := &Record{Name: "Machine", Keys: l.KeysOf("host", bench.HostID()), Manifest: l.manifest, Count: m.Fsync.Count(), Metrics: m.Metrics()}
	r.Manifest.Set(repeatKey, strconv.Itoa(l.Repeat+1))
	return set.Add(machine, l.Engine.Label(), l.Sitting, r)
}
