package experiment

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/result"
)

// PermissionOptions are those of G1 alone, and flags of varve authz rebac. What is zero
// follows from the lab's.
type PermissionOptions struct {
	Size     string          `json:"size,omitempty" help:"How much data: tiny, small or full (that of the user's document), or several times one as in fullx4." default:"small"`
	Clients  []int           `json:"clients,omitempty" help:"Numbers of clients that ask at once." default:"1,8,32"`
	Closures []rebac.Closure `json:"closures,omitempty" help:"How groups in groups are found: by a table, by a recursive query." default:"materialised,on-the-fly" enum:"materialised,on-the-fly"`
	Batch    int             `json:"batch,omitempty" help:"Rows in a transaction of ingest." default:"10000"`
}

// permission is the data of G1 in a store.
type permission struct {
	PermissionOptions
	data   *rebac.Data
	oracle *rebac.Oracle
	store  *rebac.Store
}

func measurePermissions(l *Lab) (list []variant, err error) {
	p := permission{PermissionOptions: *cmp.Or(l.Permissions, &PermissionOptions{})}
	size := rebac.Scaled(l.Scale)
	if p.Size != "" {
		if size, err = rebac.ParseSize(p.Size); err != nil {
			return nil, err
		}
	}
	if len(p.Clients) == 0 {
		p.Clients = []int{1, 8, 32}
	}
	if len(p.Closures) == 0 {
		p.Closures = rebac.Closures
	}
	var scenarios []rebac.Scenario
	err = l.aside(func() (err error) {
		if p.data, err = rebac.Generate(size, l.Seed); err == nil {
			p.oracle = rebac.NewOracle(p.data)
			scenarios, err = rebac.Scenarios(p.data, p.oracle)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	options := l.storeOptions()
	options.Readers = slices.Max(p.Clients)
	s := &shared{lab: l, layout: "rebac", options: options, fill: p.fill}
	c := l.config("layout", "rebac", "profile", size.Name, "durability", string(l.Durability))
	list = append(list, s.filling("RebacIngest", c))
	for _, clients := range p.Clients {
		for _, closure := range p.Closures {
			for i := range scenarios {
				loop := l.loop(clients, 0)
				c := c.With("op", scenarios[i].Name).With("closure", string(closure)).With("clients", itoa(clients))
				list = append(list, s.variant("Rebac", c, func(ctx context.Context, r *result.Record) error {
					return p.ask(ctx, s.db, &scenarios[i], closure, loop, r)
				}))
			}
		}
	}
	return list, nil
}

func (p *permission) fill(ctx context.Context, db *database, r *result.Record) (err error) {
	if p.store, err = rebac.New(db.DB); err != nil {
		return err
	}
	in, err := p.store.Ingest(ctx, p.data, p.Batch)
	if err != nil {
		return err
	}
	closure, err := p.store.BuildClosure(ctx)
	if err != nil {
		return err
	}
	r.Latencies = append(r.Latencies, in.Batches)
	put(r, in.Took.Seconds(), "ingest-s")
	put(r, in.Rate(), "rows/s")
	put(r, in.Indexes.Seconds(), "index-s")
	put(r, closure.Seconds(), "closure-s")
	if err := db.sizes(ctx, in.Objects, "B/row", r); err != nil {
		return err
	}
	for _, c := range p.Closures { // beside the scenarios, before anything is measured
		if err := p.store.Verify(ctx, p.data, p.oracle, c, rebac.VerifyConfig{Checks: 500, Lists: 20}); err != nil {
			return err
		}
	}
	return nil
}

// processorEvery is how often the processor's use is read: measurements may be short.
const processorEvery = 100 * time.Millisecond

func (p *permission) ask(ctx context.Context, db *database, scenario *rebac.Scenario, c rebac.Closure, loop pace.Config, r *result.Record) error {
	sampler := probe.Start(ctx, probe.Config{Stats: db.Stats, Interval: processorEvery})
	out, err := p.store.Ask(ctx, scenario, c, loop)
	samples := sampler.Stop()
	if out == nil {
		return err
	}
	addOutcome(r, out)
	addSamples(r, samples, out.Started, out.Seconds())
	if cores, ok := r.Metric("cores"); ok && out.Rate() > 0 {
		put(r, cores/out.Rate()*1e6, "cpu-ms/1k")
	}
	return err
}
