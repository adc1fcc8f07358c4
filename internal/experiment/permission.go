package experiment

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
)

// PermissionOptions are those of G1 alone. What is zero follows from the lab's.
type PermissionOptions struct {
	Size     string          `json:"size,omitempty"` // as in rebac.ParseSize
	Clients  []int           `json:"clients,omitempty"`
	Closures []rebac.Closure `json:"closures,omitempty"`
	Batch    int             `json:"batch,omitempty"` // rows in a transaction of ingest
}

func permissions() []Experiment {
	return []Experiment{{
		ID: "G1", Title: "Permissions", Layouts: []string{"rebac"},
		Question: "How fast are permission checks and listings through organizations, groups in groups and access lists?",
		Earlier:  "one client, p95: SpiceDB on Postgres 2.4 to 4.9 ms a check and 19 to 76 ms a listing, Postgres 17 1.0 to 7.9 and 1.0 to 3.0; ingest 3.6 to 54 s",
		Run:      measurePermissions,
	}}
}

// permission is the data of G1 in a store.
type permission struct {
	PermissionOptions
	data   *rebac.Data
	oracle *rebac.Oracle
	store  *rebac.Store
}

func measurePermissions(ctx context.Context, l *Lab) (err error) {
	p := permission{PermissionOptions: *cmp.Or(l.Permissions, &PermissionOptions{})}
	size := rebac.Scaled(l.Scale)
	if p.Size != "" {
		if size, err = rebac.ParseSize(p.Size); err != nil {
			return err
		}
	}
	if len(p.Clients) == 0 {
		p.Clients = []int{1, 8}
	}
	if len(p.Closures) == 0 {
		p.Closures = rebac.Closures
	}
	if p.data, err = rebac.Generate(size, l.Seed); err != nil {
		return err
	}
	p.oracle = rebac.NewOracle(p.data)
	scenarios, err := rebac.Scenarios(p.data, p.oracle)
	if err != nil {
		return err
	}
	options := l.storeOptions()
	options.Readers = slices.Max(p.Clients)
	s := &shared{lab: l, layout: "rebac", options: options, fill: p.fill}
	c := l.config("layout", "rebac", "profile", size.Name, "durability", string(l.Durability))
	if err := s.filling(ctx, "RebacIngest", c); err != nil {
		return err
	}
	for _, clients := range p.Clients {
		for _, closure := range p.Closures {
			for i := range scenarios {
				cfg := rebac.MeasureConfig{Scenario: &scenarios[i], Closure: closure, Clients: clients, Duration: l.Phase}
				c := c.With("op", cfg.Scenario.Name).With("closure", string(closure)).With("clients", itoa(clients))
				err := s.measure(ctx, "Rebac", c, func(ctx context.Context, r *result.Record) error { return p.ask(ctx, s.db, cfg, r) })
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// verified is what is asked, beside the scenarios, before anything is measured.
var verified = rebac.VerifyConfig{Checks: 500, Lists: 20}

func (p *permission) fill(ctx context.Context, db *store.DB, r *result.Record) (err error) {
	if p.store, err = rebac.New(db); err != nil {
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
	r.Metrics = append(r.Metrics,
		result.Metric{Value: in.Took.Seconds(), Unit: "ingest-s"}, result.Metric{Value: in.Rate(), Unit: "rows/s"},
		result.Metric{Value: in.Indexes.Seconds(), Unit: "index-s"}, result.Metric{Value: closure.Seconds(), Unit: "closure-s"})
	if err := sizes(ctx, db, in.Objects, "B/row", r); err != nil {
		return err
	}
	for _, c := range p.Closures {
		if err := p.store.Verify(ctx, p.data, p.oracle, c, verified); err != nil {
			return err
		}
	}
	return nil
}

// processorEvery is how often the processor's use is read: measurements may be short.
const processorEvery = 100 * time.Millisecond

func (p *permission) ask(ctx context.Context, db *store.DB, cfg rebac.MeasureConfig, r *result.Record) error {
	sampler := probe.Start(ctx, probe.Config{Stats: db.Stats, Interval: processorEvery})
	out, err := p.store.Measure(ctx, cfg)
	samples := sampler.Stop()
	addOutcome(r, out)
	if out == nil {
		return err
	}
	addSamples(r, samples, out.Started, out.Seconds())
	if cores, ok := r.Metric("cores"); ok && out.Rate() > 0 {
		r.Metrics = append(r.Metrics, result.Metric{Value: cores / out.Rate() * 1e6, Unit: "cpu-ms/1k"})
	}
	return err
}
