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

// readLayouts are the layouts that readers choose between.
var readLayouts = []string{"arkiv", "arkiv-analyzed", "arkiv-ordered", "arkiv-pruned", "compact", "simple"}

// readLoad is how a mix is read: at a temperature, or warmed up by clients, in a closed loop where there is no rate.
type readLoad struct {
	mix         string
	clients     int
	rate        float64
	reads       int64 // after which a closed loop ends before the phase does; 0 is never
	temperature string
	memory      int64 // budget in place of the lab's; 0 is the lab's
}

// The warm-up is as in the user's documents. They measure 10,000 reads, which
// take two seconds: a phase is longer, because a store larger than its memory
// is not steady by then. Short is the least that still shows it.
const (
	shortReads  = 1_000
	warmUpReads = 1_000
)

// reading measures each of the read mixes of the user's documents under each load on the base profile, every
// answer compared with the generator's. The mixes are the same for all layouts: they are over the same source.
func reading(loads []readLoad, layouts ...string) func(*Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		return l.reads([]float64{l.Scale}, l.mixes(), loads, l.LayoutsOr(layouts...)), nil
	}
}

// capacity measures in closed loops at each of the sizes.
func capacity(l *Lab) ([]Variant, error) {
	loads := []readLoad{{clients: 1}, {clients: readers}}
	return l.reads(l.sizes(), l.mixes(), loads, l.LayoutsOr()), nil
}

// budgets are in GiB: the budgets of the user's documents, and smaller ones for
// smaller data.
var budgets = []float64{0.25, 1, 2, 4, 16}

// againstMemory measures two mixes with budgets of memory, as far as the machine has them. A reads few pages, B many.
func againstMemory(l *Lab) ([]Variant, error) {
	var loads []readLoad
	for _, gib := range budgets {
		for _, clients := range []int{1, readers} {
			loads = append(loads, readLoad{clients: clients, memory: int64(gib * (1 << 30))})
		}
	}
	mixes := l.mixes()
	return l.reads(l.sizes(), mixes[:min(2, len(mixes))], loads, l.LayoutsOr()), nil
}

func (l *Lab) reads(scales []float64, mixes []string, loads []readLoad, layouts []string) (list []Variant) {
	oracles := map[float64]*mix.Oracle{}
	for _, layout := range layouts {
		for _, scale := range scales {
			for _, name := range mixes {
				for _, v := range loads {
					v.mix = name
					on := func(ctx context.Context, r *Record, f func(at *Lab, oracle *mix.Oracle, cp *bench.Copy) error) error {
						at, err := l.within(v.memory, r)
						if err != nil {
							return err
						}
						o := at.StoreOptions()
						o.Readers = min(max(v.clients, 1), driver.DefaultReaders) // more clients share them
						return at.WithBase(ctx, layout, scale, o, r, func(d *bench.Dataset, cp *bench.Copy) (err error) {
							if oracles[scale] == nil {
								oracles[scale], err = at.Oracle(d)
							}
							if err == nil {
								err = f(at, oracles[scale], cp)
							}
							return err
						})
					}
					of := Variant{Name: "ReadMix", Keys: l.OnBase(layout, scale, v.keys()...), Cost: baseCost(scale, 1.1, 0), Run: func(ctx context.Context, r *Record) error {
						return on(ctx, r, func(at *Lab, oracle *mix.Oracle, cp *bench.Copy) error { return v.read(ctx, at, oracle, cp, r) })
					}}
					if v.each() {
						of.Each = func(ctx context.Context, f func(*bench.Copy, *bench.Operations) error) error {
							return on(ctx, new(Record), func(at *Lab, oracle *mix.Oracle, cp *bench.Copy) error {
								m, err := mix.New(v.mix, oracle)
								if err != nil {
									return err
								}
								do := func(ops *bench.Operations) error { return f(cp, ops) }
								return bench.EachRead(ctx, cp.Entities, m, v.clients, at.fresh(), do)
							})
						}
					}
					list = append(list, of)
				}
			}
		}
	}
	return list
}

// each reports whether the load is one of single reads: in a closed loop, within
// the lab's memory.
func (v readLoad) each() bool { return v.rate == 0 && v.temperature == "" && v.memory == 0 }

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

// read measures a load: after a warm-up, at a rate after one more of the loop's own.
func (v readLoad) read(ctx context.Context, l *Lab, oracle *mix.Oracle, cp *bench.Copy, r *Record) error {
	if v.temperature != "" && v.temperature != warm && l.Engine.Server != "" {
		return fmt.Errorf("%w: a server's files are out of reach", ErrSkip)
	}
	m, err := mix.New(v.mix, oracle)
	if err != nil {
		return err
	}
	cfg := bench.ReadMixConfig{Mix: m, Config: l.Loop(v.clients, v.rate, v.reads)}
	warming := l.warmed(cp, m, v.clients, warmUpReads)
	if v.temperature != "" {
		cfg.Config = pace.Config{N: coldReads, Duration: l.Phase, Seed: l.fresh()}
	}
	switch v.temperature {
	case cold:
		warming = nil
	case lukewarm:
		warming = l.filled(cp, nil)
	case warm:
		warming = l.filled(cp, l.warmed(cp, m, 1, coldReads))
	}
	if !cp.Entities.Temporal() {
		r.Note(mix.HeadOnlyNote)
	}
	return l.readMix(ctx, cp, warming, cfg, r)
}

// readMix is a phase of reads.
func (l *Lab) readMix(ctx context.Context, cp *bench.Copy, warm warming, cfg bench.ReadMixConfig, r *Record) error {
	return l.phaseAt(ctx, cp, warm, r, func(ctx context.Context) (*pace.Outcome, error) {
		out, err := bench.ReadMix(ctx, cp.Entities, cfg)
		r.Outcome(out)
		return out, err
	})
}

// warmed is an engine that has answered so many reads, other than the measured
// ones, or as many as it can in a phase.
func (l *Lab) warmed(cp *bench.Copy, m mix.Reads, clients int, reads int64) warming {
	cfg := pace.Config{Workers: clients, N: reads, Duration: l.Phase, Seed: l.fresh() + 1}
	return func(ctx context.Context) error {
		_, err := bench.ReadMix(ctx, cp.Entities, bench.ReadMixConfig{Mix: m, Config: cfg})
		return err
	}
}

// filled is a page cache that holds the files, as far as the budget goes,
// before another warming. It is right for a store that fits: in a smaller cache
// these pages stay in place of the requested ones.
func (l *Lab) filled(cp *bench.Copy, next warming) warming {
	return func(ctx context.Context) (err error) {
		if l.Engine.Server == "" { // else the files are out of reach
			err = probe.Fill(cp.Dir, l.Memory)
		}
		if err == nil && next != nil {
			err = next(ctx)
		}
		return err
	}
}

// Loop is a phase of operations of clients, at a rate if there is one; n, if not 0, are enough.
// Where nothing else says so, what comes in its first part is not measured.
func (l *Lab) Loop(clients int, rate float64, n int64) pace.Config {
	cfg := pace.Config{Workers: clients, Rate: rate, N: n, Duration: l.Phase, Seed: l.fresh()}
	if n == 0 {
		cfg.WarmUp = l.warmUp()
	}
	return cfg
}

// warmUp is how long operations are not recorded at first.
func (l *Lab) warmUp() time.Duration { return min(l.Phase/5, 2*time.Second) }

// Milliseconds returns a time as results have it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// The temperatures of an engine that was just opened: cold has files that the page cache does
// not hold, lukewarm has them in it, and warm has answered before.
const (
	cold     = "cold"
	lukewarm = "lukewarm"
	warm     = "warm"
)

// coldReads are few: each makes those after it warmer.
const coldReads = 200
