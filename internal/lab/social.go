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

// SocialOptions are those of G2 alone. What is not given follows from the lab's.
type SocialOptions struct {
	Relationships []int     `min:"1" max:"1000000000" json:"relationships,omitempty" help:"Sizes of the graph." default:"100000"`
	QPS           []float64 `above:"0" max:"10000000" name:"qps" json:"qps,omitempty" help:"Requests a second, measured one after the other." default:"1000"`
}

// socialRates are those of AuthZed's first tests, and a tenth of them.
var socialRates = []float64{100, 1000, 10_000}

// What its load does at a time, and which part of the objects takes part.
const (
	socialWorkers = 8
	socialActive  = 0.1
)

func measureSocial(l *Lab) (list []Variant, err error) {
	o := *cmp.Or(l.Social, &SocialOptions{})
	if len(o.Relationships) == 0 {
		o.Relationships = []int{l.scaled(10_000_000, social.MinRelationships)}
	}
	if len(o.QPS) == 0 {
		o.QPS = socialRates
	}
	for _, n := range o.Relationships {
		list = append(list, l.circle(n, o.QPS)...)
	}
	return list, nil
}

// circle is the loading of a graph, and the load at each rate over it.
func (l *Lab) circle(relationships int, rates []float64) []Variant {
	var graph *social.Graph
	made := sync.OnceValue(func() error {
		return l.aside(func() (err error) { graph, err = social.New(relationships, l.Seed); return err })
	})
	options := l.storeOptions()
	options.Readers = socialWorkers
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
	for _, rate := range rates {
		list = append(list, Variant{"Social", keys.With("qps", ftoa(rate)).With("phase", l.Phase.String()), func(ctx context.Context, r *Record) error {
			if err := made(); err != nil {
				return err
			}
			cfg := social.Config{Mix: social.Mix, Active: socialActive}
			cfg.Config = pace.Config{Workers: socialWorkers, Duration: l.Phase, WarmUp: l.warmUp(), Seed: l.fresh()}
			cfg.At(rate)
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

// socialPhase runs a load and compares the store with the oracle afterwards.
func (l *Lab) socialPhase(ctx context.Context, cp *bench.Copy, graph *social.Graph, cfg social.Config, r *Record) error {
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
