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

// tables load the data of packages rebac or social into an engine. The data are
// generated when they are first needed.
type tables struct {
	data    string // of the data set
	readers int
	made    func() error
	fill    Run
}

// loading plans the measurement of the load.
func (s *tables) loading(name string, c Keys, rows int) Variant {
	return Variant{Name: name, Keys: c, Cost: Cost{Rows: float64(rows)}, Run: func(t *Trial, ctx context.Context) error {
		if err := t.Aside(s.made); err != nil {
			return err
		}
		t.Store.Readers = s.readers
		return t.WithNew(ctx, "", "", func() error { return s.fill(t, ctx) })
	}}
}

// loaded plans run on the loaded data.
func (s *tables) loaded(name string, c Keys, run Run) Variant {
	return Variant{Name: name, Keys: c, Cost: Cost{Phases: 1}, Run: func(t *Trial, ctx context.Context) error {
		if err := t.Aside(s.made); err != nil {
			return err
		}
		t.Store.Readers = s.readers
		fill := func(ctx context.Context, db *store.DB) error {
			of := t.trial(new(Record))
			of.Copy = &bench.Copy{DB: db}
			return s.fill(of, ctx)
		}
		d := bench.Dataset{Engine: t.Engine, Layout: t.layout(), Source: &bench.Source{Name: fmt.Sprintf("%s seed=%d", s.data, t.Seed), Fill: fill}}
		return t.withDataset(ctx, d, func() error { return run(t, ctx) })
	}}
}

// askers are the numbers of concurrent clients that ask for permissions.
var askers = []int{1, 8, 32}

func measurePermissions(l *Lab) (list []Variant, _ error) {
	size := rebac.Scaled(l.Scale)
	var data *rebac.Data
	var scenarios []rebac.Scenario
	s := tables{data: fmt.Sprintf("rebac %+v", size), readers: slices.Max(askers), made: sync.OnceValue(func() (err error) {
		if data, err = rebac.Generate(size, l.Seed); err == nil {
			scenarios, err = rebac.Scenarios(data, rebac.NewOracle(data))
		}
		return err
	}), fill: func(t *Trial, ctx context.Context) error {
		ingest, closure, err := rebac.Load(ctx, t.DB, data)
		if err != nil {
			return err
		}
		t.Count = int64(data.Size.Objects())
		t.Put(ingest.Seconds(), "ingest-s")
		t.Put(float64(t.Count)/ingest.Seconds(), "rows/s")
		t.Put(closure.Seconds(), "closure-s")
		return t.size(ctx, data.Size.Objects(), "B/row")
	}}
	c := l.KeysOf("layout", "rebac", "profile", size.Name, "durability", string(l.Durability))
	list = append(list, s.loading("RebacIngest", c, size.Objects()))
	for _, n := range askers {
		for _, closure := range rebac.Closures {
			for i, name := range rebac.ScenarioNames {
				c := c.With("op", name).With("closure", string(closure)).With("clients", itoa(n))
				list = append(list, s.loaded("Rebac", c, func(t *Trial, ctx context.Context) error {
					return t.ask(ctx, scenarios[i], closure, n)
				}))
			}
		}
	}
	return list, nil
}

// ask measures a scenario's questions in random order.
func (t *Trial) ask(ctx context.Context, scenario rebac.Scenario, closure rebac.Closure, clients int) error {
	scenario.Questions = slices.Clone(scenario.Questions)
	shuffle(scenario.Questions, t.questionSeed())
	return t.Timed(ctx, nil, func() (*pace.Outcome, error) {
		out, err := rebac.Ask(ctx, t.DB, &scenario, closure, t.Loop(clients, 0, 0))
		if out != nil {
			t.Outcome(out)
		}
		return out, err
	})
}

// socialRates are the rates of AuthZed's first tests, and a tenth of them.
var socialRates = []float64{100, 1000, 10_000}

// socialWorkers is the number of concurrent requests of its load.
const socialWorkers = 8

// measureSocial measures loading a graph, and then the load at each rate.
func measureSocial(l *Lab) (list []Variant, _ error) {
	n := l.Scaled(10_000_000, social.MinRelationships)
	var graph *social.Graph
	s := tables{data: fmt.Sprintf("social relationships=%d", n), readers: socialWorkers, made: sync.OnceValue(func() (err error) {
		graph, err = social.New(n, l.Seed)
		return err
	}), fill: func(t *Trial, ctx context.Context) error {
		start := time.Now()
		if _, err := social.Load(ctx, t.DB, graph); err != nil {
			return err
		}
		took := time.Since(start).Seconds()
		t.Put(took, "load-s")
		t.Put(float64(n)/took, "rel/s")
		return t.size(ctx, n, "B/rel")
	}}
	c := l.KeysOf("layout", "social", "durability", string(l.Durability), "relationships", itoa(n))
	list = append(list, s.loading("SocialLoad", c, n))
	for _, rate := range l.RatesOr(socialRates...) {
		c := c.With("qps", Ftoa(rate)).With("phase", l.Phase.String())
		list = append(list, s.loaded("Social", c, func(t *Trial, ctx context.Context) error { return t.socialLoad(ctx, graph, rate) }))
	}
	return list, nil
}

// socialLoad runs a load on a graph and compares the store with the oracle
// afterwards.
func (t *Trial) socialLoad(ctx context.Context, graph *social.Graph, rate float64) error {
	s, err := social.NewStore(t.DB)
	if err != nil {
		return err
	}
	oracle := social.NewOracle(graph)
	err = t.Timed(ctx, nil, func() (*pace.Outcome, error) {
		out, err := social.Run(ctx, s, oracle, social.Config{Mix: social.Mix, Active: social.Active, Config: t.Loop(socialWorkers, rate, 0)})
		t.Outcome(out)
		t.Metrics = append(t.Metrics, social.Metrics(out)...)
		t.Kinds = append(t.Kinds, social.Sums(out)...)
		if out.First != nil {
			t.Note("the first failed request: " + out.First.Error())
		}
		return out, err
	})
	if err == nil {
		err = s.Verify(ctx, oracle)
	}
	return err
}
