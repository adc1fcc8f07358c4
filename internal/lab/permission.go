package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/store"
)

// PermissionOptions are those of G1 alone, and flags of varve authz rebac. What is zero
// follows from the lab's.
type PermissionOptions struct {
	Size     string          `json:"size,omitempty" help:"How much data: tiny, small or full (that of the user's document), or several times one as in fullx4." default:"small"`
	Clients  []int           `min:"1" max:"100000" json:"clients,omitempty" help:"Numbers of clients that ask at once." default:"1,8,32"`
	Closures []rebac.Closure `json:"closures,omitempty" help:"How groups in groups are found: by a table, by a recursive query." default:"materialised,on-the-fly" enum:"materialised,on-the-fly"`
	Batch    int             `min:"1" max:"1000000" json:"batch,omitempty" help:"Rows in a transaction of ingest." default:"10000"`
}

// permissions is the data of G1 and what is asked of them.
type permissions struct {
	PermissionOptions
	size      rebac.Size
	data      *rebac.Data
	oracle    *rebac.Oracle
	scenarios []rebac.Scenario
}

func measurePermissions(l *Lab) (list []Variant, err error) {
	p := permissions{PermissionOptions: *cmp.Or(l.Permissions, &PermissionOptions{}), size: rebac.Scaled(l.Scale)}
	if p.Size != "" {
		if p.size, err = rebac.ParseSize(p.Size); err != nil {
			return nil, err
		}
	}
	if len(p.Clients) == 0 {
		p.Clients = []int{1, 8, 32}
	}
	if len(p.Closures) == 0 {
		p.Closures = rebac.Closures
	}
	made := sync.OnceValue(func() error { return l.aside(func() error { return p.make(l.Seed) }) })
	options := l.storeOptions()
	options.Readers = slices.Max(p.Clients)
	c := l.keys("layout", "rebac", "profile", p.size.Name, "durability", string(l.Durability))
	list = append(list, Variant{"RebacIngest", c, func(ctx context.Context, r *Record) error {
		if err := made(); err != nil {
			return err
		}
		return l.withDB(ctx, "", options, r, func(db *store.DB) error { return p.ingest(ctx, db, r) })
	}})
	d := bench.Dataset{Engine: l.Engine, Layout: "rebac", Source: &bench.Source{
		Name: fmt.Sprintf("rebac %+v seed=%d", p.size, l.Seed),
		Fill: func(ctx context.Context, db *store.DB) error { return p.ingest(ctx, db, new(Record)) },
	}}
	for _, clients := range p.Clients {
		for _, closure := range p.Closures {
			for i, name := range rebac.ScenarioNames {
				c := c.With("op", name).With("closure", string(closure)).With("clients", itoa(clients))
				list = append(list, Variant{"Rebac", c, func(ctx context.Context, r *Record) error {
					if err := made(); err != nil {
						return err
					}
					return l.withDataset(ctx, d, options, r, func(cp *bench.Copy) error {
						scenario := p.scenarios[i]
						scenario.Questions = slices.Clone(scenario.Questions)
						Shuffle(scenario.Questions, l.fresh())
						return l.ask(ctx, cp, &scenario, closure, clients, r)
					})
				}})
			}
		}
	}
	return list, nil
}

func (p *permissions) make(seed uint64) (err error) {
	if p.data, err = rebac.Generate(p.size, seed); err != nil {
		return err
	}
	p.oracle = rebac.NewOracle(p.data)
	p.scenarios, err = rebac.Scenarios(p.data, p.oracle)
	return err
}

// ingest fills a database, tells how long that took, and then asks what nobody measures.
func (p *permissions) ingest(ctx context.Context, db *store.DB, r *Record) error {
	s, err := rebac.New(db)
	if err != nil {
		return err
	}
	in, err := s.Ingest(ctx, p.data, p.Batch)
	if err != nil {
		return err
	}
	closure, err := s.BuildClosure(ctx)
	if err != nil {
		return err
	}
	r.Count = in.Batches.Count()
	r.kind("batch", in.Batches)
	r.put(in.Took.Seconds(), "ingest-s")
	r.put(float64(p.data.Size.Objects())/in.Took.Seconds(), "rows/s")
	r.put(in.Indexes.Seconds(), "index-s")
	r.put(closure.Seconds(), "closure-s")
	if err := r.sizes(ctx, db, p.data.Size.Objects(), "B/row"); err != nil {
		return err
	}
	for _, c := range p.Closures { // beside the scenarios
		if err := s.Verify(ctx, p.data, p.oracle, c, 500, 20); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) ask(ctx context.Context, cp *bench.Copy, scenario *rebac.Scenario, c rebac.Closure, clients int, r *Record) error {
	s, err := rebac.New(cp.DB)
	if err != nil {
		return err
	}
	err = l.phase(ctx, cp, temperature{fill: true}, r, func(ctx context.Context) (*pace.Outcome, error) {
		out, err := s.Ask(ctx, scenario, c, l.loop(clients, 0))
		if out != nil {
			r.outcome(out)
		}
		return out, err
	})
	qps, _ := r.Metric("qps")
	if cores, ok := r.Metric("cores"); ok && qps > 0 {
		r.put(cores/qps*1e6, "cpu-ms/1k")
	}
	return err
}
