package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/social"
)

// SocialOptions are those of G2 alone. What is zero follows from the lab's.
type SocialOptions struct {
	Relationships []int          `json:"relationships,omitempty"`
	Script        *social.Script `json:"script,omitempty"`
}

// socialRates are those of AuthZed's first tests, and a tenth of them.
var socialRates = []float64{100, 1000, 10_000}

func measureSocial(l *Lab) (list []variant, err error) {
	o := *cmp.Or(l.Social, &SocialOptions{})
	if len(o.Relationships) == 0 {
		o.Relationships = []int{l.scaled(10_000_000, social.MinRelationships)}
	}
	if o.Script == nil {
		if o.Script, err = social.LoadScript(social.DefaultScript); err != nil {
			return nil, err
		}
		o.Script.WarmUp, o.Script.Phases = l.warmUp(), nil
		for _, rate := range socialRates {
			o.Script.Phases = append(o.Script.Phases, social.Phase{Rate: rate, Duration: l.Phase})
		}
	}
	for _, n := range o.Relationships {
		var c circle
		if err := l.aside(func() (err error) { c.graph, err = social.New(n, l.Seed); return err }); err != nil {
			return nil, err
		}
		list = append(list, c.variants(l, n, o.Script)...)
	}
	return list, nil
}

// variants are the phases of a script over the graph.
func (c *circle) variants(l *Lab, relationships int, script *social.Script) []variant {
	options := l.storeOptions()
	options.Readers = script.Connections
	s := &shared{lab: l, layout: "social", options: options, fill: c.fill}
	config := l.config("durability", string(l.Durability), "relationships", itoa(relationships))
	list := []variant{s.filling(social.LoadName, config)}
	for i, phase := range script.Phases {
		cfg := social.RunConfig{Script: script, Phase: phase, Seed: l.Seed + uint64(i)}
		config := config.With("script", script.Name).With("qps", ftoa(phase.Rate)).With("phase", phase.Duration.String())
		list = append(list, s.variant(social.RunName, config, func(ctx context.Context, r *result.Record) error { return c.phase(ctx, cfg, r) }))
	}
	return list
}

// circle is the graph of G2 in a store.
type circle struct {
	graph    *social.Graph
	store    *social.Store
	oracle   *social.Oracle
	hopeless float64 // requests a second that cannot be had, nor more
	broken   bool    // a phase went wrong: the oracle may not know the store any more
}

func (c *circle) fill(ctx context.Context, db *database, r *result.Record) (err error) {
	if c.store, err = social.NewStore(db.DB); err != nil {
		return err
	}
	c.oracle, c.hopeless, c.broken = social.NewOracle(c.graph), math.Inf(1), false
	start := time.Now()
	if err := c.store.Load(ctx, c.graph); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	put(r, took, "load-s")
	put(r, float64(c.graph.Len())/took, "rel/s")
	return db.sizes(ctx, c.graph.Len(), "B/rel", r)
}

// phase runs one phase and compares the store with the oracle afterwards. What goes
// wrong is in its record; the phases after it are left out, and so are those of a
// higher rate than one that cannot be had.
func (c *circle) phase(ctx context.Context, cfg social.RunConfig, r *result.Record) error {
	if c.broken || cfg.Phase.Rate > c.hopeless {
		return fmt.Errorf("%w: %v requests a second are left out: %v requests a second were too many, or a phase failed", errSkip, cfg.Phase.Rate, c.hopeless)
	}
	sampler := probe.Start(ctx, probe.Config{Stats: c.store.DB.Stats})
	out, err := social.Run(ctx, c.store, c.oracle, cfg)
	samples := sampler.Stop()
	social.Describe(out, r)
	addSamples(r, samples, out.Started, out.Seconds())
	if out.Success() < social.Hopeless {
		c.hopeless = min(c.hopeless, cfg.Phase.Rate)
	}
	if err == nil {
		err = c.store.Verify(ctx, c.oracle)
	}
	c.broken = err != nil
	return err
}
