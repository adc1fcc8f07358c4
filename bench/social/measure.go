package social

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// MeasureConfig says what Measure measures.
type MeasureConfig struct {
	Engine     bench.Engine
	Graph      Config
	Script     *Script // all its phases, in order
	Durability driver.Durability
	Memory     int64 // bytes that the engine may use for caching; 0 is its default

	// Cache lends the directory of the database.
	Cache *bench.Cache

	// Log is told what is being done; nil is silence.
	Log func(format string, args ...any)
}

// Hopeless is the success below which Measure leaves out the phases of a higher
// rate: the machine ends there.
const Hopeless = 0.9

// Measure fills a store with a graph, runs the phases of a script on it, and
// appends a record of each and of the filling. What goes wrong in a phase is in
// its record; the phases after it are left out.
func Measure(ctx context.Context, set *result.Writer, cfg MeasureConfig) (err error) {
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	run, err := cfg.Cache.NewRun(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Remove()) }()
	opts := &store.Options{Durability: cfg.Durability, Memory: cfg.Memory, Readers: cfg.Script.Connections}
	db, err := Open(ctx, cfg.Engine, run.Data(), opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m := &measuring{cfg: cfg, set: set, dir: run.Data()}
	if m.store, err = NewStore(db); err != nil {
		return err
	}
	if err := m.load(ctx, opts); err != nil {
		return err
	}
	return m.phases(ctx)
}

type measuring struct {
	cfg      MeasureConfig
	set      *result.Writer
	dir      string
	store    *Store
	oracle   *Oracle
	manifest string
}

// config begins the configuration of a record.
func (m *measuring) config() result.Config {
	return result.Config{
		{Key: "engine", Value: m.cfg.Engine.Name}, {Key: "durability", Value: string(m.cfg.Durability)},
		{Key: "relationships", Value: strconv.Itoa(m.cfg.Graph.Relationships)},
	}
}

// load fills the store and appends the record of it.
func (m *measuring) load(ctx context.Context, opts *store.Options) error {
	g, err := New(m.cfg.Graph)
	if err != nil {
		return err
	}
	m.cfg.Log("%s: load %d relationships of %d users", m.cfg.Engine.Name, g.Len(), g.Count(User))
	r := &result.Record{Experiment: Experiment, Name: LoadName, Config: m.config(), Started: time.Now().UTC()}
	if err := m.store.Load(ctx, g); err != nil {
		return err
	}
	r.Took = time.Since(r.Started)
	stats, err := m.store.db.Stats(ctx)
	if err != nil {
		return err
	}
	r.Metrics = append(r.Metrics,
		result.Metric{Value: r.Took.Seconds(), Unit: "load-s"},
		result.Metric{Value: float64(g.Len()) / r.Took.Seconds(), Unit: "rel/s"})
	if size := stats.DatabaseBytes; size != nil {
		r.Metrics = append(r.Metrics,
			result.Metric{Value: float64(*size) / 1e6, Unit: "db-MB"},
			result.Metric{Value: float64(*size) / float64(g.Len()), Unit: "B/rel"})
	}
	if m.manifest, err = m.describe(ctx, opts, g); err != nil {
		return err
	}
	r.Manifest = m.manifest
	m.cfg.Log("%s: loaded in %s", m.cfg.Engine.Name, r.Took.Round(time.Millisecond))
	m.oracle = NewOracle(g)
	return m.set.Append(r)
}

// describe stores the manifest and returns its key.
func (m *measuring) describe(ctx context.Context, opts *store.Options, g *Graph) (string, error) {
	host, err := bench.ReadHost(m.dir)
	if err != nil {
		return "", err
	}
	settings, err := m.store.db.Settings(ctx)
	if err != nil {
		return "", err
	}
	info := m.store.engine.Info()
	return m.set.Manifest(bench.Manifest{
		Name: RunName, Varve: bench.ReadRevision(ctx),
		Engine:   bench.EngineVersion{Name: info.Name, Version: info.Version, Library: info.Library},
		Settings: settings, Layout: "social", Host: host,
		Options: bench.StoreOptions{Durability: opts.Durability, MemoryBytes: opts.Memory, Readers: opts.Readers},
		Dataset: &bench.DatasetID{Key: fmt.Sprintf("social-%d-%d", g.cfg.Relationships, g.cfg.Seed), Rows: uint64(g.Len())},
	})
}

// phases runs the script until a phase cannot be done.
func (m *measuring) phases(ctx context.Context) error {
	hopeless := 0.0
	for i, p := range m.cfg.Script.Phases {
		if hopeless > 0 && p.Rate >= hopeless {
			m.cfg.Log("%s: %v requests a second are left out: %v were too many", m.cfg.Engine.Name, p.Rate, hopeless)
			continue
		}
		r := &result.Record{
			Experiment: Experiment, Name: RunName, Manifest: m.manifest, Started: time.Now().UTC(),
			Config: m.config().With("script", m.cfg.Script.Name).With("qps", strconv.FormatFloat(p.Rate, 'f', -1, 64)),
		}
		for m.set.Has(r.Key(), r.Repeat) {
			r.Repeat++
		}
		out, err := m.phase(ctx, r, RunConfig{Script: m.cfg.Script, Phase: p, Seed: m.cfg.Graph.Seed + uint64(i)})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Took = time.Since(r.Started)
		if err != nil {
			r.Error = err.Error()
		}
		if err := m.set.Append(r); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Key(), err)
		}
		if out.Success() < Hopeless {
			hopeless = p.Rate
		}
	}
	return nil
}

// phase runs one phase into a record, and compares the store with the oracle
// afterwards.
func (m *measuring) phase(ctx context.Context, r *result.Record, cfg RunConfig) (*Outcome, error) {
	m.cfg.Log("%s: %d relationships, %v requests a second for %s", m.cfg.Engine.Name, m.cfg.Graph.Relationships, cfg.Phase.Rate, cfg.Phase.Duration)
	sampler := probe.Start(ctx, probe.Config{Stats: m.store.db.Stats})
	out, err := Run(ctx, m.store, m.oracle, cfg)
	samples := sampler.Stop()
	out.Describe(r)
	r.Timeline = samples.Fill(out.Seconds(), out.Started)
	r.Marks = samples.Marks(out.Started)
	if err == nil {
		err = m.store.Verify(ctx, m.oracle)
	}
	return out, err
}

// Describe adds the figures of a phase to a record.
func (o *Outcome) Describe(r *result.Record) {
	r.Metrics = append(r.Metrics, o.Metrics()...)
	r.Metrics = append(r.Metrics, result.Metric{Value: o.Success(), Unit: successUnit})
	r.Latencies = append(r.Latencies, o.Distributions()...)
	for _, word := range []string{"check", "lookup", "write"} {
		rec := o.Merged(word)
		if rec == nil {
			continue
		}
		d := rec.Distribution(word)
		r.Latencies = append(r.Latencies, d)
		r.Metrics = append(r.Metrics,
			result.Metric{Value: milliseconds(d.P50), Unit: word + "-p50-ms"},
			result.Metric{Value: milliseconds(d.P95), Unit: word + "-p95-ms"})
	}
	if o.FirstError != nil {
		r.Notes = append(r.Notes, "the first failed request: "+o.FirstError.Error())
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
