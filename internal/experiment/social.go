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
	"github.com/varvedb/varve/store"
)

// SocialOptions are those of G2 alone. What is zero follows from the lab's.
type SocialOptions struct {
	Relationships []int          `json:"relationships,omitempty"`
	Script        *social.Script `json:"script,omitempty"`
}

// socialRates are those of AuthZed's first tests, and a tenth of them.
var socialRates = []float64{100, 1000, 10_000}

func socialGraph() []Experiment {
	return []Experiment{{
		ID: social.Experiment, Title: "Social graph", Layouts: []string{"social"}, Ordered: true,
		Question: "Which rates of permission checks with 1 % writes are carried within AuthZed's service levels?",
		Earlier:  "AuthZed at 10M relationships: 1,000 a second with check p95 19.7 ms on 48 vCPU, 10,000 with 16.3 ms on 84",
		Run:      measureSocial,
	}}
}

func measureSocial(ctx context.Context, l *Lab) (err error) {
	o := *cmp.Or(l.Social, &SocialOptions{})
	if len(o.Relationships) == 0 {
		o.Relationships = []int{l.scaled(10_000_000, social.MinRelationships)}
	}
	if o.Script == nil {
		if o.Script, err = social.LoadScript(social.DefaultScript); err != nil {
			return err
		}
		o.Script.WarmUp, o.Script.Phases = l.warmUp(), nil
		for _, rate := range socialRates {
			o.Script.Phases = append(o.Script.Phases, social.Phase{Rate: rate, Duration: l.Phase})
		}
	}
	for _, n := range o.Relationships {
		if err := l.runScript(ctx, n, o.Script); err != nil {
			return err
		}
	}
	return nil
}

// runScript runs a script over a graph.
func (l *Lab) runScript(ctx context.Context, relationships int, script *social.Script) (err error) {
	var c circle
	if c.graph, err = social.New(relationships, l.Seed); err != nil {
		return err
	}
	options := l.storeOptions()
	options.Readers = script.Connections
	s := &shared{lab: l, layout: "social", options: options, fill: c.fill}
	config := l.config("durability", string(l.Durability), "relationships", itoa(relationships))
	if err := s.filling(ctx, social.LoadName, config); err != nil {
		return err
	}
	for i, phase := range script.Phases {
		cfg := social.RunConfig{Script: script, Phase: phase, Seed: l.Seed + uint64(i)}
		config := config.With("script", script.Name).With("qps", ftoa(phase.Rate)).With("phase", phase.Duration.String())
		err := s.measure(ctx, social.RunName, config, func(ctx context.Context, r *result.Record) error { return c.phase(ctx, cfg, r) })
		if err != nil {
			return err
		}
	}
	return nil
}

// circle is the graph of G2 in a store.
type circle struct {
	graph    *social.Graph
	store    *social.Store
	oracle   *social.Oracle
	hopeless float64 // requests a second that cannot be had, nor more
	broken   bool    // a phase went wrong: the oracle may not know the store any more
}

func (c *circle) fill(ctx context.Context, db *store.DB, r *result.Record) (err error) {
	if c.store, err = social.NewStore(db); err != nil {
		return err
	}
	c.oracle, c.hopeless, c.broken = social.NewOracle(c.graph), math.Inf(1), false
	start := time.Now()
	if err := c.store.Load(ctx, c.graph); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	r.Metrics = append(r.Metrics,
		result.Metric{Value: took, Unit: "load-s"}, result.Metric{Value: float64(c.graph.Len()) / took, Unit: "rel/s"})
	return sizes(ctx, db, c.graph.Len(), "B/rel", r)
}

// phase runs one phase and compares the store with the oracle afterwards. What goes
// wrong is in its record; the phases after it are left out, and so are those of a
// higher rate than one that cannot be had.
func (c *circle) phase(ctx context.Context, cfg social.RunConfig, r *result.Record) error {
	if c.broken || cfg.Phase.Rate > c.hopeless {
		return fmt.Errorf("%w: %v requests a second are left out: %v were too many, or a phase failed", errSkip, cfg.Phase.Rate, c.hopeless)
	}
	sampler := probe.Start(ctx, probe.Config{Stats: c.store.DB.Stats})
	out, err := social.Run(ctx, c.store, c.oracle, cfg)
	samples := sampler.Stop()
	out.Describe(r)
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
