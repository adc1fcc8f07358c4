package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
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

func measureSocial(l *Lab) (list []Variant, err error) {
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
		list = append(list, l.circle(n, o.Script)...)
	}
	return list, nil
}

// circle is the loading of a graph, and the phases of a script over it.
func (l *Lab) circle(relationships int, script *social.Script) []Variant {
	var graph *social.Graph
	made := sync.OnceValue(func() error {
		return l.aside(func() (err error) { graph, err = social.New(relationships, l.Seed); return err })
	})
	options := l.storeOptions()
	options.Readers = script.Connections
	keys := l.keys("layout", "social", "durability", string(l.Durability), "relationships", itoa(relationships))
	list := []Variant{{"SocialLoad", keys, func(ctx context.Context, r *Record) error {
		if err := made(); err != nil {
			return err
		}
		return l.withDB(ctx, "", options, r, func(db *store.DB) error { return loadSocial(ctx, db, graph, r) })
	}}}
	d := bench.Dataset{Engine: l.Engine, Layout: "social", Source: &bench.Source{
		Name: fmt.Sprintf("social relationships=%d seed=%d", relationships, l.Seed),
		Fill: func(ctx context.Context, db *store.DB) error { return loadSocial(ctx, db, graph, new(Record)) },
	}}
	for _, phase := range script.Phases {
		cfg := social.RunConfig{Script: script, Phase: phase}
		keys := keys.With("script", script.Name).With("qps", ftoa(phase.Rate)).With("phase", phase.Duration.String())
		list = append(list, Variant{"Social", keys, func(ctx context.Context, r *Record) error {
			if err := made(); err != nil {
				return err
			}
			cfg.Seed = l.fresh()
			return l.withDataset(ctx, d, options, r, func(cp *bench.Copy) error { return l.socialPhase(ctx, cp, graph, cfg, r) })
		}})
	}
	return list
}

func loadSocial(ctx context.Context, db *store.DB, graph *social.Graph, r *Record) error {
	s, err := social.NewStore(db)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.Load(ctx, graph); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	r.put(took, "load-s")
	r.put(float64(graph.Len())/took, "rel/s")
	return r.sizes(ctx, db, graph.Len(), "B/rel")
}

// socialPhase runs one phase and compares the store with the oracle afterwards.
func (l *Lab) socialPhase(ctx context.Context, cp *bench.Copy, graph *social.Graph, cfg social.RunConfig, r *Record) error {
	s, err := social.NewStore(cp.DB)
	if err != nil {
		return err
	}
	oracle := social.NewOracle(graph)
	err = l.phase(ctx, cp, temperature{fill: true}, r, func(ctx context.Context) (*pace.Outcome, error) {
		out, err := social.Run(ctx, s, oracle, cfg)
		r.outcome(out)
		r.Metrics = append(r.Metrics, social.Metrics(out)...)
		r.Kinds = append(r.Kinds, social.Sums(out)...)
		if out.First != nil {
			r.note("the first failed request: " + out.First.Error())
		}
		return out, err
	})
	if err == nil {
		err = s.Verify(ctx, oracle)
	}
	return errors.Join(err, ctx.Err())
}
