package lab

import (
	"cmp"
	"context"
	"errors"
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

// PermissionOptions are those of G1 alone, and flags of varve authz rebac. What is zero
// follows from the lab's.
type PermissionOptions struct {
	Size     string          `json:"size,omitempty" help:"How much data: tiny, small or full (that of the user's document)." default:"small"`
	Clients  []int           `min:"1" max:"100000" json:"clients,omitempty" help:"Numbers of clients that ask at once." default:"1,8,32"`
	Closures []rebac.Closure `json:"closures,omitempty" help:"How groups in groups are found: by a table, by a recursive query." default:"materialised,on-the-fly" enum:"materialised,on-the-fly"`
	Batch    int             `min:"1" max:"1000000" json:"batch,omitempty" help:"Rows in a transaction of ingest." default:"10000"`
}

// SocialOptions are those of G2 alone. What is not given follows from the lab's.
type SocialOptions struct {
	Relationships []int     `min:"1" max:"1000000000" json:"relationships,omitempty" help:"Sizes of the graph." default:"100000"`
	QPS           []float64 `above:"0" max:"10000000" name:"qps" json:"qps,omitempty" help:"Requests a second, measured one after the other." default:"1000"`
}

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
func (t *tables) loading(name string, c Keys) Variant {
	return Variant{name, c, func(ctx context.Context, r *Record) error {
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
	return Variant{name, c, func(ctx context.Context, r *Record) error {
		if err := t.made(); err != nil {
			return err
		}
		return t.withDataset(ctx, d, t.options, r, func(cp *bench.Copy) error { return f(ctx, cp, r) })
	}}
}

func measurePermissions(l *Lab) (list []Variant, err error) {
	o, size := *cmp.Or(l.Permissions, &PermissionOptions{}), rebac.Scaled(l.Scale)
	if o.Size != "" {
		if size, err = rebac.ParseSize(o.Size); err != nil {
			return nil, err
		}
	}
	var data *rebac.Data
	var scenarios []rebac.Scenario
	clients := given(o.Clients, 1, 8, 32)
	t := l.tables("rebac", fmt.Sprintf("rebac %+v", size), slices.Max(clients), func() (err error) {
		if data, err = rebac.Generate(size, l.Seed); err == nil {
			scenarios, err = rebac.Scenarios(data, rebac.NewOracle(data))
		}
		return err
	}, func(ctx context.Context, db *store.DB, r *Record) error { return ingest(ctx, db, data, o.Batch, r) })
	c := l.KeysOf("layout", "rebac", "profile", size.Name, "durability", string(l.Durability))
	list = append(list, t.loading("RebacIngest", c))
	for _, n := range clients {
		for _, closure := range given(o.Closures, rebac.Closures...) {
			for i, name := range rebac.ScenarioNames {
				c := c.With("op", name).With("closure", string(closure)).With("clients", itoa(n))
				list = append(list, t.loaded("Rebac", c, func(ctx context.Context, cp *bench.Copy, r *Record) error {
					scenario := scenarios[i]
					scenario.Questions = slices.Clone(scenario.Questions)
					Shuffle(scenario.Questions, l.fresh())
					s, err := rebac.New(cp.DB)
					if err != nil {
						return err
					}
					return l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
						out, err := s.Ask(ctx, &scenario, closure, l.Loop(n, 0, 0))
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

// ingest fills a database and tells how long that took.
func ingest(ctx context.Context, db *store.DB, data *rebac.Data, batch int, r *Record) error {
	s, err := rebac.New(db)
	if err != nil {
		return err
	}
	took, err := s.Ingest(ctx, data, batch)
	if err != nil {
		return err
	}
	closure, err := s.BuildClosure(ctx)
	if err != nil {
		return err
	}
	r.Count = int64(data.Size.Objects())
	r.Put(took.Seconds(), "ingest-s")
	r.Put(float64(r.Count)/took.Seconds(), "rows/s")
	r.Put(closure.Seconds(), "closure-s")
	return r.sizes(ctx, db, data.Size.Objects(), "B/row")
}

// socialRates are those of AuthZed's first tests, and a tenth of them.
var socialRates = []float64{100, 1000, 10_000}

// What its load does at a time, and which part of the objects takes part.
const (
	socialWorkers = 8
	socialActive  = 0.1
)

// measureSocial measures the loading of graphs, and the load at each rate over them.
func measureSocial(l *Lab) (list []Variant, err error) {
	o := *cmp.Or(l.Social, &SocialOptions{})
	for _, n := range given(o.Relationships, l.Scaled(10_000_000, social.MinRelationships)) {
		var graph *social.Graph
		t := l.tables("social", fmt.Sprintf("social relationships=%d", n), socialWorkers, func() (err error) {
			graph, err = social.New(n, l.Seed)
			return err
		}, func(ctx context.Context, db *store.DB, r *Record) error { return loadSocial(ctx, db, graph, r) })
		c := l.KeysOf("layout", "social", "durability", string(l.Durability), "relationships", itoa(n))
		list = append(list, t.loading("SocialLoad", c))
		for _, rate := range given(o.QPS, socialRates...) {
			c := c.With("qps", Ftoa(rate)).With("phase", l.Phase.String())
			list = append(list, t.loaded("Social", c, func(ctx context.Context, cp *bench.Copy, r *Record) error {
				cfg := social.Config{Mix: social.Mix, Active: socialActive, Config: l.Loop(socialWorkers, rate, 0)}
				return l.socialPhase(ctx, cp, graph, cfg, r)
			}))
		}
	}
	return list, nil
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
	r.Put(took, "load-s")
	r.Put(float64(graph.Len())/took, "rel/s")
	return r.sizes(ctx, db, graph.Len(), "B/rel")
}

// socialPhase runs a load and compares the store with the oracle afterwards.
func (l *Lab) socialPhase(ctx context.Context, cp *bench.Copy, graph *social.Graph, cfg social.Config, r *Record) error {
	s, err := social.NewStore(cp.DB)
	if err != nil {
		return err
	}
	oracle := social.NewOracle(graph)
	err = l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
		out, err := social.Run(ctx, s, oracle, cfg)
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
	return errors.Join(err, ctx.Err())
}
