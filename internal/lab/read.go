package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/store/driver"
)

// readLayouts are the layouts that are compared for reads.
var readLayouts = []string{"arkiv", "arkiv-analyzed", "arkiv-ordered", "arkiv-pruned", "compact", "simple"}

// readLoad is how a mix is read: at a cache temperature, or warmed up by
// clients; without a rate in a closed loop.
type readLoad struct {
	mix         string
	clients     int
	rate        float64
	reads       int64 // number of reads after which a closed loop ends early; 0 is never
	temperature string
	memory      int64                   // budget instead of the lab's; 0 is the lab's
	oracles     map[float64]*mix.Oracle // by scale, built on first use
}

// The warm-up is as in the user's documents. They measure 10,000 reads, which
// take two seconds. A phase here is longer, because a store larger than its
// memory is not steady by then. Short is the minimum that still shows it.
const (
	shortReads  = 1_000
	warmUpReads = 1_000
)

// reading measures each read mix of the user's documents under each load on the
// base profile. Every answer is compared with the generator's. All layouts get
// the same mixes over the same source.
func reading(loads []readLoad, layouts ...string) func(*Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		return l.reads([]float64{l.Scale}, l.mixes(), loads, l.LayoutsOr(layouts...))
	}
}

// capacity measures closed loops at each size.
func capacity(l *Lab) ([]Variant, error) {
	loads := []readLoad{{clients: 1}, {clients: readers}}
	return l.reads(l.scales(), l.mixes(), loads, l.LayoutsOr())
}

// budgets are in GiB: the user's documents' budgets, and smaller ones for
// smaller data.
var budgets = []float64{0.25, 1, 2, 4, 16}

// againstMemory measures two mixes with various memory budgets, as far as the
// machine has the memory. Mix A reads few pages, B many.
func againstMemory(l *Lab) ([]Variant, error) {
	var loads []readLoad
	for _, gib := range budgets {
		for _, clients := range []int{1, readers} {
			loads = append(loads, readLoad{clients: clients, memory: int64(gib * (1 << 30))})
		}
	}
	mixes := l.mixes()
	return l.reads(l.scales(), mixes[:min(2, len(mixes))], loads, l.LayoutsOr())
}

func (l *Lab) reads(scales []float64, mixes []string, loads []readLoad, layouts []string) (list []Variant, _ error) {
	oracles := map[float64]*mix.Oracle{}
	for _, layout := range layouts {
		for _, scale := range scales {
			for _, name := range mixes {
				for _, v := range loads {
					v.mix, v.oracles = name, oracles
					list = append(list, v.variant(l, l.OnBase(layout, scale, v.keys()...), scale))
				}
			}
		}
	}
	return list, nil
}

func (v readLoad) variant(l *Lab, keys Keys, scale float64) Variant {
	of := Variant{Name: "ReadMix", Keys: keys, Cost: BaseCost(scale, 1.1, 0), Run: func(t *Trial, ctx context.Context) error {
		return v.on(ctx, t, func(m mix.Reads) error { return v.read(ctx, t, m) })
	}}
	if v.rate == 0 && v.temperature == "" && v.memory == 0 { // single reads, in a closed loop within the lab's memory
		of.Each = func(ctx context.Context, f func(*bench.Copy, *bench.Operations) error) error {
			t := l.trial(&Record{Keys: keys})
			return v.on(ctx, t, func(m mix.Reads) error {
				cfg := bench.ReadMixConfig{Mix: m, Config: pace.Config{Workers: v.clients, N: eachReads, Seed: l.questionSeed()}}
				ops, err := bench.EachRead(ctx, t.Entities, cfg)
				if err != nil {
					return err
				}
				defer ops.Close()
				return f(t.Copy, ops)
			})
		}
	}
	return of
}

// on runs f on the open data set with the load's mix.
func (v readLoad) on(ctx context.Context, t *Trial, f func(m mix.Reads) error) error {
	if err := t.setMemory(v.memory); err != nil {
		return err
	}
	t.Store.Readers = min(max(v.clients, 1), driver.DefaultReaders) // more clients share them
	return t.WithBase(ctx, func() (err error) {
		oracle := v.oracles[t.scale()]
		if oracle == nil {
			oracle, err = t.Oracle(t.Data)
			v.oracles[t.scale()] = oracle
		}
		if err != nil {
			return err
		}
		m, err := mix.New(v.mix, oracle)
		if err != nil {
			return err
		}
		return f(m)
	})
}

func (v readLoad) keys() []string {
	switch {
	case v.memory > 0:
		return []string{"mix", v.mix, "clients", itoa(v.clients), "memory", Ftoa(float64(v.memory) / (1 << 30))}
	case v.temperature != "":
		return []string{"mix", v.mix, "temperature", v.temperature}
	case v.rate > 0:
		return []string{"mix", v.mix, "clients", itoa(v.clients), "loop", "open-" + Ftoa(v.rate)}
	}
	return []string{"mix", v.mix, "clients", itoa(v.clients), "loop", "closed"}
}

// read measures a load after a warm-up. A load at a rate also has the loop's
// warm-up.
func (v readLoad) read(ctx context.Context, t *Trial, m mix.Reads) error {
	if v.temperature != "" && v.temperature != warm && t.Engine.Server != "" {
		return fmt.Errorf("%w: a server's files are out of reach", ErrSkip)
	}
	loop, warming := t.Loop(v.clients, v.rate, v.reads), t.warmed(m, v.clients, warmUpReads)
	if v.temperature != "" {
		loop = pace.Config{N: coldReads, Duration: t.Phase, Seed: t.questionSeed()}
	}
	switch v.temperature {
	case cold:
		warming = nil
	case lukewarm:
		warming = t.fillFirst(nil)
	case warm:
		warming = t.fillFirst(t.warmed(m, 1, coldReads))
	}
	if !t.Entities.Temporal() {
		t.Note(mix.HeadOnlyNote)
	}
	return t.readMix(ctx, warming, m, loop)
}

// readMix is a phase of reads.
func (t *Trial) readMix(ctx context.Context, warm warming, m mix.Reads, loop pace.Config) error {
	return t.Timed(ctx, warm, func() (*pace.Outcome, error) {
		out, err := bench.ReadMix(ctx, t.Entities, bench.ReadMixConfig{Mix: m, Config: loop})
		t.Outcome(out)
		return out, err
	})
}

// warmed is a warming by reads other than the measured ones: a number of them,
// or as many as a phase allows.
func (t *Trial) warmed(m mix.Reads, clients int, reads int64) warming {
	cfg := pace.Config{Workers: clients, N: reads, Duration: t.Phase, Seed: t.questionSeed() + 1}
	return func(ctx context.Context) error {
		_, err := bench.ReadMix(ctx, t.Entities, bench.ReadMixConfig{Mix: m, Config: cfg})
		return err
	}
}

// fillFirst reads the files into the page cache, up to the budget, before
// another warming. It suits a store that fits; in a smaller cache these pages
// would displace the requested ones.
func (t *Trial) fillFirst(next warming) warming {
	return func(ctx context.Context) (err error) {
		if t.Engine.Server == "" { // else the files are out of reach
			err = probe.Fill(t.Dir, t.Memory)
		}
		if err == nil && next != nil {
			err = next(ctx)
		}
		return err
	}
}

// Loop configures a phase of clients' operations, at a rate if given; n, if not
// 0, ends it after so many. By default the first part is not recorded.
func (l *Lab) Loop(clients int, rate float64, n int64) pace.Config {
	cfg := pace.Config{Workers: clients, Rate: rate, N: n, Duration: l.Phase, Seed: l.questionSeed()}
	if n == 0 {
		cfg.WarmUp = l.warmUp()
	}
	return cfg
}

// warmUp is how long operations are not recorded at first.
func (l *Lab) warmUp() time.Duration { return min(l.Phase/5, 2*time.Second) }

// Milliseconds returns a duration in milliseconds, as in results.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// The temperatures of a newly opened engine: with cold its files are not in the
// page cache, with lukewarm they are, and with warm it has already answered
// queries.
const (
	cold     = "cold"
	lukewarm = "lukewarm"
	warm     = "warm"
)

// coldReads is small, because each read warms the cache for the next ones.
const coldReads = 200
