package experiment

import (
	"context"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
)

// readLayouts are those that readers choose between.
var readLayouts = []string{"arkiv", "arkiv-analyzed", "arkiv-pruned", "simple"}

// reads are section C: the read mixes of the user's documents on the base
// profile, every answer compared with the generator's.
func reads() []Experiment {
	return []Experiment{
		{
			ID: "C1", Title: "Read mixes, capacity", Layouts: readLayouts,
			Question: "How many reads a second does each mix reach with 1 and with 10 clients, and how long does each kind of read take?",
			Earlier:  "planned: 1,000 queries of warm-up, 10,000 measured, 1 and 10 connections; not measured",
			Run: func(ctx context.Context, l *Lab) error {
				return l.readMixes(ctx, readPlan{layouts: l.layouts(readLayouts...), clients: []int{1, 10}})
			},
		},
		{
			ID: "C2", Title: "Read mixes at a rate", Layouts: []string{"arkiv"},
			Question: "What are the latencies at 100 to 10,000 reads a second, from the moment a read was due?",
			Earlier:  "planned: target rates 100 to 10,000; not measured",
			Run: func(ctx context.Context, l *Lab) error {
				return l.readMixes(ctx, readPlan{layouts: l.layouts("arkiv"), clients: []int{10}, rates: []float64{100, 1_000, 5_000, 10_000}})
			},
		},
		{
			ID: "C3", Title: "Cold and warm", Layouts: []string{"arkiv"},
			Question: "What do reads cost when nothing is cached, when only the page cache is warm, and when all is?",
			Earlier:  "asked for: index in memory, over 95 % resident",
			Run:      temperatures,
		},
	}
}

type readPlan struct {
	layouts []string
	clients []int
	rates   []float64 // none: closed loop
	short   bool      // the least that still tells
}

// The seed's protocol: 1,000 queries of warm-up, 10,000 measured.
const (
	protocolReads = 10_000
	shortReads    = 1_000
)

func (l *Lab) readMixes(ctx context.Context, p readPlan) error {
	rates := p.rates
	if len(rates) == 0 {
		rates = []float64{0}
	}
	return l.eachMix(p.layouts, func(d *mendoza, m mix.Reads) error {
		for _, clients := range p.clients {
			for _, rate := range rates {
				c := l.mixConfig(d, m).With("clients", itoa(clients)).With("loop", loopName(rate))
				err := l.measure(ctx, "ReadMix", c, func(ctx context.Context, r *result.Record) error {
					return l.readMix(ctx, d, m, clients, rate, p.short, r)
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func loopName(rate float64) string {
	if rate == 0 {
		return "closed"
	}
	return "open-" + ftoa(rate)
}

func (l *Lab) readMix(ctx context.Context, d *mendoza, m mix.Reads, clients int, rate float64, short bool, r *result.Record) error {
	o := l.storeOptions()
	o.Readers = clients
	return l.withDataset(ctx, d.Dataset, o, r, func(ctx context.Context, cp *bench.Copy) error {
		cfg := bench.ReadMixConfig{Mix: m, Clients: clients, Rate: rate, For: l.Phase, WarmUp: l.warmUp(), Seed: l.Seed}
		if rate == 0 {
			// The seed counts queries; a slow engine gets no more than the phase.
			cfg.Reads = protocolReads
		}
		if short {
			cfg.Reads = shortReads
		}
		out, err := bench.ReadMix(ctx, cp.Entities, cfg)
		addOutcome(r, out)
		if !cp.Entities.Temporal() {
			r.Notes = append(r.Notes, mix.HeadOnlyNote)
		}
		return err
	})
}

// warmUp is how long operations are not recorded at first.
func (l *Lab) warmUp() time.Duration { return min(l.Phase/5, 2*time.Second) }

// addOutcome adds what a loop of reads did.
func addOutcome(r *result.Record, out *pace.Outcome) {
	if out == nil {
		return
	}
	r.Metrics = append(r.Metrics, out.Metrics()...)
	all := out.All().Distribution("all")
	if all.Count > 0 {
		r.Metrics = append(r.Metrics, all.Metrics("")...)
	}
	r.Metrics = append(r.Metrics, result.Metric{Value: out.Capacity(), Unit: "capacity-qps"})
	r.Latencies = append(r.Latencies, all)
	r.Latencies = append(r.Latencies, out.Distributions()...)
}

// The temperatures: cold is a new engine on files that the page cache does not
// hold, lukewarm a new engine on files that it does, warm an engine that has
// answered before.
var temperatureNames = []string{"cold", "lukewarm", "warm"}

func temperatures(ctx context.Context, l *Lab) error {
	return l.eachMix(l.layouts("arkiv"), func(d *mendoza, m mix.Reads) error {
		for _, temperature := range temperatureNames {
			err := l.measure(ctx, "ReadMix", l.mixConfig(d, m).With("temperature", temperature), func(ctx context.Context, r *result.Record) error {
				return l.readAt(ctx, d, m, temperature, r)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// coldReads are few: each makes those after it warmer.
const coldReads = 200

func (l *Lab) readAt(ctx context.Context, d *mendoza, m mix.Reads, temperature string, r *result.Record) error {
	return l.withDataset(ctx, d.Dataset, l.storeOptions(), r, func(ctx context.Context, cp *bench.Copy) error {
		cfg := bench.ReadMixConfig{Mix: m, Reads: coldReads, For: l.Phase, Seed: l.Seed}
		if temperature == "warm" {
			if _, err := bench.ReadMix(ctx, cp.Entities, cfg); err != nil {
				return err
			}
			cfg.Seed++
		} else if err := cp.Reopen(ctx, func(dir string) error { return setCache(dir, temperature == "cold") }); err != nil {
			return err
		}
		if err := addResidency(r, cp.Dir, "resident-before"); err != nil {
			return err
		}
		out, err := bench.ReadMix(ctx, cp.Entities, cfg)
		addOutcome(r, out)
		if err != nil {
			return err
		}
		return addResidency(r, cp.Dir, "resident-after")
	})
}

// setCache empties the page cache of the files of a directory, or fills it.
func setCache(dir string, cold bool) error {
	if cold {
		_, err := probe.Evict(dir)
		return err
	}
	_, err := probe.Touch(dir)
	return err
}

func addResidency(r *result.Record, dir, unit string) error {
	res, err := probe.Residency(dir)
	if err == nil {
		r.Metrics = append(r.Metrics, result.Metric{Value: res.Share(), Unit: unit})
	}
	return err
}
