package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/store"
)

// tables are what packages rebac and social keep in an engine: their data, made when they are
// needed first, and the loading of them.
type tables struct {
	*Lab
	layout, data string // of the data set
	options      *store.Options
	made         func() error
	fill         func(ctx context.Context, db *store.DB, r *Record) error
}

func (l *Lab) tables(layout, data string, readers int, produce func() error, fill func(ctx context.Context, db *store.DB, r *Record) error) *tables {
	t := &tables{l, layout, fmt.Sprintf("%s seed=%d", data, l.Seed), l.StoreOptions(), sync.OnceValue(func() error { return l.Aside(produce) }), fill}
	t.options.Readers = readers
	return t
}

// loading measures how they are loaded.
func (t *tables) loading(name string, c Keys, rows int) Variant {
	return Variant{Name: name, Keys: c, Cost: Cost{Rows: float64(rows)}, Run: func(ctx context.Context, r *Record) error {
		if err := t.made(); err != nil {
			return err
		}
		return t.WithNew(ctx, "", "", t.options, r, func(cp *bench.Copy) error { return t.fill(ctx, cp.DB, r) })
	}}
}

// loaded measures f on them.
func (t *tables) loaded(name string, c Keys, f func(ctx context.Context, cp *bench.Copy, r *Record) error) Variant {
	fill := func(ctx context.Context, db *store.DB) error { return t.fill(ctx, db, new(Record)) }
	d := bench.Dataset{Engine: t.Engine, Layout: t.layout, Source: &bench.Source{Name: t.data, Fill: fill}}
	return Variant{Name: name, Keys: c, Cost: Cost{Phases: 1}, Run: func(ctx context.Context, r *Record) error {
		if err := t.made(); err != nil {
			return err
		}
		return t.withDataset(ctx, d, t.options, r, func(cp *bench.Copy) error { return f(ctx, cp, r) })
	}}
}

// askers are the numbers of clients that ask for permissions at once.
var askers = []int{1, 8, 32}

func measurePermissions(l *Lab) (list []Variant, _ error) {
	size := rebac.Scaled(l.Scale)
	var data *rebac.Data
	var scenarios []rebac.Scenario
	t := l.tables("rebac", fmt.Sprintf("rebac %+v", size), slices.Max(askers), func() (err error) {
		if data, err = rebac.Generate(size, l.Seed); err == nil {
			scenarios, err = rebac.Scenarios(data, rebac.NewOracle(data))
		}
		return err
	}, func(ctx context.Context, db *store.DB, r *Record) error {
		ingest, closure, err := rebac.Load(ctx, db, data)
		if err != nil {
			return err
		}
		r.Count = int64(data.Size.Objects())
		r.Put(ingest.Seconds(), "ingest-s")
		r.Put(float64(r.Count)/ingest.Seconds(), "rows/s")
		r.Put(closure.Seconds(), "closure-s")
		return r.sizes(ctx, db, data.Size.Objects(), "B/row")
	})
	c := l.KeysOf("layout", "rebac", "profile", size.Name, "durability", string(l.Durability))
	list = append(list, t.loading("RebacIngest", c, size.Objects()))
	for _, n := range askers {
		for _, closure := range rebac.Closures {
			for i, name := range rebac.ScenarioNames {
				c := c.With("op", name).With("closure", string(closure)).With("clients", itoa(n))
				list = append(list, t.loaded("Rebac", c, func(ctx context.Context, cp *bench.Copy, r *Record) error {
					scenario := scenarios[i]
					scenario.Questions = slices.Clone(scenario.Questions)
					Shuffle(scenario.Questions, l.fresh())
					return l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
						out, err := rebac.Ask(ctx, cp.DB, &scenario, closure, l.Loop(n, 0, 0))
						if out != nil {
							r.Outcome(out)
						}
						return out, err
					})
				}))
			}
		}
	}
	return list, nil
}

// socialRates are the rates of AuthZed's first tests, and a tenth of them.
var socialRates = []float64{100, 1000, 10_000}

// socialWorkers is how many requests its load has at a time.
const socialWorkers = 8

// measureSocial measures the loading of a graph, and the load at each rate over it.
func measureSocial(l *Lab) (list []Variant, _ error) {
	n := l.Scaled(10_000_000, social.MinRelationships)
	var graph *social.Graph
	t := l.tables("social", fmt.Sprintf("social relationships=%d", n), socialWorkers, func() (err error) {
		graph, err = social.New(n, l.Seed)
		return err
	}, func(ctx context.Context, db *store.DB, r *Record) error {
		start := time.Now()
		s, err := social.Load(ctx, db, graph)
		if err != nil {
			return err
		}
		took := time.Since(start).Seconds()
		r.Put(took, "load-s")
		r.Put(float64(n)/took, "rel/s")
		return r.sizes(ctx, s.DB, n, "B/rel")
	})
	c := l.KeysOf("layout", "social", "durability", string(l.Durability), "relationships", itoa(n))
	list = append(list, t.loading("SocialLoad", c, n))
	for _, rate := range l.RatesOr(socialRates...) {
		c := c.With("qps", Ftoa(rate)).With("phase", l.Phase.String())
		list = append(list, t.loaded("Social", c, func(ctx context.Context, cp *bench.Copy, r *Record) error {
			return l.socialLoad(ctx, cp, graph, rate, r)
		}))
	}
	return list, nil
}

// socialLoad puts a load on a graph and compares the store with the oracle afterwards.
func (l *Lab) socialLoad(ctx context.Context, cp *bench.Copy, graph *social.Graph, rate float64, r *Record) error {
	s, err := social.NewStore(cp.DB)
	if err != nil {
		return err
	}
	oracle := social.NewOracle(graph)
	err = l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
		out, err := social.Run(ctx, s, oracle, social.Config{Mix: social.Mix, Active: social.Active, Config: l.Loop(socialWorkers, rate, 0)})
		r.Outcome(out)
		r.Metrics = append(r.Metrics, social.Metrics(out)...)
		r.Kinds = append(r.Kinds, social.Sums(out)...)
		if out.First != nil {
			r.Note("the first failed request: " + out.First.Error())
		}
		return out, err
	})
	if err == nil {
		err = s.Verify(ctx, oracle)
	}
	return err
}
