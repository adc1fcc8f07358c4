package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store/driver"
)

// readLayouts are those that readers choose between.
var readLayouts = []string{"arkiv", "arkiv-analyzed", "arkiv-ordered", "arkiv-pruned", "compact", "simple"}

// readLoad is how a mix is read: at a temperature, or warmed up by clients, in a
// closed loop where there is no rate.
type readLoad struct {
	mix         string
	clients     int
	rate        float64
	reads       int64 // after which a closed loop ends; a slow engine gets no more than the phase
	temperature string
}

// The seed's protocol: 1,000 queries of warm-up, 10,000 measured. Short is the least
// that still tells.
const (
	protocolReads = 10_000
	shortReads    = 1_000
	warmUpPart    = 10 // one in so many is of the warm-up
)

// reading measures each of the read mixes of the user's documents under each load on
// the base profile, every answer compared with the generator's. The mixes are the same
// for all layouts: they are over the same source.
func reading(loads []readLoad, layouts ...string) func(*Lab) ([]variant, error) {
	return func(l *Lab) (list []variant, _ error) {
		var oracle *mix.Oracle
		for _, layout := range l.layouts(layouts...) {
			for _, name := range mix.Names {
				for _, v := range loads {
					v.mix = name
					list = append(list, variant{"ReadMix", l.onBase(layout, v.config()...), func(ctx context.Context, r *result.Record) error {
						o := l.storeOptions()
						o.Readers = min(v.clients, driver.DefaultReaders) // more clients take turns
						return l.withMendoza(ctx, layout, l.Scale, o, r, func(d *mendoza, cp *bench.Copy) (err error) {
							if oracle == nil {
								oracle, err = l.oracle(d)
							}
							if err == nil {
								err = v.read(ctx, l, oracle, cp, r)
							}
							return err
						})
					}})
				}
			}
		}
		return list, nil
	}
}

func (v readLoad) config() []string {
	switch {
	case v.temperature != "":
		return []string{"mix", v.mix, "temperature", v.temperature}
	case v.rate > 0:
		return []string{"mix", v.mix, "clients", itoa(v.clients), "loop", "open-" + ftoa(v.rate)}
	}
	return []string{"mix", v.mix, "clients", itoa(v.clients), "loop", "closed"}
}

func (v readLoad) read(ctx context.Context, l *Lab, oracle *mix.Oracle, cp *bench.Copy, r *result.Record) error {
	m, err := mix.New(v.mix, oracle)
	if err != nil {
		return err
	}
	if v.temperature != "" {
		return l.readAt(ctx, cp, m, v.temperature, r)
	}
	cfg := bench.ReadMixConfig{Mix: m, Rate: v.rate, Config: l.loop(v.clients, v.reads)}
	if v.reads > 0 { // what is read first pays for a page cache that knows nothing of the store, and 2 s are few reads of a slow engine
		before := cfg
		before.N, before.WarmUp, before.Seed = v.reads/warmUpPart, 0, cfg.Seed+1
		if _, err := bench.ReadMix(ctx, cp.Entities, before); err != nil {
			return err
		}
	}
	out, err := bench.ReadMix(ctx, cp.Entities, cfg)
	addOutcome(r, out)
	if !cp.Entities.Temporal() {
		r.Notes = append(r.Notes, mix.HeadOnlyNote)
	}
	return err
}

// loop is a phase of operations of clients; n, if not 0, are enough.
func (l *Lab) loop(clients int, n int64) pace.Config {
	return pace.Config{Workers: clients, N: n, Duration: l.Phase, WarmUp: l.warmUp(), Seed: l.Seed}
}

// warmUp is how long operations are not recorded at first.
func (l *Lab) warmUp() time.Duration { return min(l.Phase/5, 2*time.Second) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// The temperatures: cold is a new engine on files that the page cache does not
// hold, lukewarm a new engine on files that it does, warm an engine that has
// answered before.
const (
	cold     = "cold"
	lukewarm = "lukewarm"
	warm     = "warm"
)

// coldReads are few: each makes those after it warmer.
const coldReads = 200

func (l *Lab) readAt(ctx context.Context, cp *bench.Copy, m mix.Reads, temperature string, r *result.Record) error {
	cfg := bench.ReadMixConfig{Mix: m, Config: pace.Config{N: coldReads, Duration: l.Phase, Seed: l.Seed}}
	reach := l.Engine.Server == "" // of the files
	if !reach && temperature != warm {
		return fmt.Errorf("%w: a server's files are out of reach", errSkip)
	}
	var err error
	switch temperature {
	case warm:
		_, err = bench.ReadMix(ctx, cp.Entities, cfg)
		cfg.Seed++
	case lukewarm:
		err = cp.Reopen(ctx, probe.Touch)
	case cold:
		err = cp.Reopen(ctx, probe.Evict)
	}
	if err == nil && reach {
		err = addResidency(r, cp.Dir, "resident-before")
	}
	if err != nil {
		return err
	}
	out, err := bench.ReadMix(ctx, cp.Entities, cfg)
	addOutcome(r, out)
	if err != nil || !reach {
		return err
	}
	return addResidency(r, cp.Dir, "resident-after")
}

func addResidency(r *result.Record, dir, unit string) error {
	res, err := probe.Residency(dir)
	if err == nil {
		put(r, res.Share(), unit)
	}
	return err
}
