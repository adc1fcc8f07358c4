package experiment

import (
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

func socialGraph() []Experiment {
	return []Experiment{{
		ID: social.Experiment, Title: "Social graph", Layouts: []string{"social"}, Ordered: true,
		Question: "Which rates of permission checks with 1 % writes are carried within AuthZed's service levels?",
		Earlier:  "AuthZed at 10M relationships: 1,000 a second with check p95 19.7 ms on 48 vCPU, 10,000 with 16.3 ms on 84",
		Run: func(ctx context.Context, l *Lab) error {
			o, err := l.socialOptions()
			if err != nil {
				return err
			}
			for _, n := range o.Relationships {
				if err := l.measureSocial(ctx, n, o.Script); err != nil {
					return err
				}
			}
			return nil
		},
	}}
}

// socialRates are those of AuthZed's first tests, and a tenth of them.
var socialRates = []float64{100, 1000, 10_000}

func (l *Lab) socialOptions() (o SocialOptions, err error) {
	if l.Social != nil {
		o = *l.Social
	}
	if len(o.Relationships) == 0 {
		o.Relationships = []int{l.scaled(10_000_000, social.MinRelationships)}
	}
	if o.Script == nil {
		if o.Script, err = social.LoadScript(social.DefaultScript); err != nil {
			return o, err
		}
		o.Script.WarmUp, o.Script.Phases = l.warmUp(), nil
		for _, rate := range socialRates {
			o.Script.Phases = append(o.Script.Phases, social.Phase{Rate: rate, Duration: l.Phase})
		}
	}
	return o, nil
}

// circle is the graph of G2 in a store.
type circle struct {
	graph  *social.Graph
	store  *social.Store
	oracle *social.Oracle
}

// measureSocial runs a script over a graph. What goes wrong in a phase is in its
// record; the phases after it are left out, and so are those of a rate that cannot
// be had.
func (l *Lab) measureSocial(ctx context.Context, relationships int, script *social.Script) (err error) {
	var c circle
	if c.graph, err = social.New(social.Config{Relationships: relationships, Seed: l.Seed}); err != nil {
		return err
	}
	options := l.storeOptions()
	options.Readers = script.Connections
	s := &shared{lab: l, layout: "social", options: options, fill: c.fill}
	config := l.config("durability", string(l.Durability), "relationships", itoa(relationships))
	if err := s.filling(ctx, social.LoadName, config); err != nil {
		return err
	}
	hopeless := math.Inf(1)
	for i, phase := range script.Phases {
		cfg := social.RunConfig{Script: script, Phase: phase, Seed: l.Seed + uint64(i)}
		err := s.measure(ctx, social.RunName, config.With("script", script.Name).With("qps", ftoa(phase.Rate)).With("phase", phase.Duration.String()), func(ctx context.Context, r *result.Record) error {
			if phase.Rate >= hopeless {
				return fmt.Errorf("%w: %v requests a second were too many", errSkip, hopeless)
			}
			out, err := c.phase(ctx, cfg, r)
			if err != nil || out.Success() < social.Hopeless {
				hopeless = phase.Rate
			}
			if err != nil {
				s.failed = err
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *circle) fill(ctx context.Context, db *store.DB, r *result.Record) (err error) {
	if c.store, err = social.NewStore(db); err != nil {
		return err
	}
	c.oracle = social.NewOracle(c.graph)
	if err := c.store.Load(ctx, c.graph); err != nil {
		return err
	}
	took := time.Since(r.Started).Seconds()
	r.Metrics = append(r.Metrics,
		result.Metric{Value: took, Unit: "load-s"}, result.Metric{Value: float64(c.graph.Len()) / took, Unit: "rel/s"})
	return sizes(ctx, db, c.graph.Len(), "B/rel", r)
}

// phase runs one phase and compares the store with the oracle afterwards.
func (c *circle) phase(ctx context.Context, cfg social.RunConfig, r *result.Record) (*social.Outcome, error) {
	sampler := probe.Start(ctx, probe.Config{Stats: c.store.DB.Stats})
	out, err := social.Run(ctx, c.store, c.oracle, cfg)
	samples := sampler.Stop()
	out.Describe(r)
	addSamples(r, samples, out.Started, out.Seconds())
	if err == nil {
		err = c.store.Verify(ctx, c.oracle)
	}
	return out, err
}
