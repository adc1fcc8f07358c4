package rebac

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Config is a whole run on one engine: ingest, closure, and every scenario with
// each closure and number of clients.
type Config struct {
	Engine   bench.Engine
	Dir      string // for the database; it exists, and holds none
	Options  store.Options
	Size     Size
	Seed     uint64
	Batch    int           // rows in a transaction of ingest; zero means DefaultBatch
	Clients  []int         // nil means 1
	Closures []Closure     // nil means both
	Duration time.Duration // of each measurement; zero means one second
	Verify   VerifyConfig  // what is asked, beside the scenarios, before measuring

	Log func(format string, args ...any) // nil: silent
}

// Report is what a run measured.
type Report struct {
	Engine   driver.Info      `json:"engine"`
	Settings []driver.Setting `json:"settings"`
	Size     Size             `json:"size"`
	Seed     uint64           `json:"seed"`
	Heavy    int              `json:"heavy_user"`
	Regular  int              `json:"regular_user"`

	Ingest       IngestResult  `json:"ingest"`
	Closure      time.Duration `json:"closure_ns"` // to build its table
	ClosureRows  int           `json:"closure_rows"`
	Stats        driver.Stats  `json:"stats"` // after ingest and closure, the log folded in
	Measurements []Measurement `json:"measurements"`
}

// StorageBytes returns the size of the database; 0 when the engine does not tell.
func (r *Report) StorageBytes() int64 {
	if r.Stats.DatabaseBytes == nil {
		return 0
	}
	return *r.Stats.DatabaseBytes
}

// Run runs all of it. A report that comes with an error holds what was measured
// before.
func Run(ctx context.Context, cfg Config) (r Report, err error) {
	r.Size, r.Seed = cfg.Size, cfg.Seed
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	if cfg.Clients == nil {
		cfg.Clients = []int{1}
	}
	if cfg.Closures == nil {
		cfg.Closures = Closures
	}
	d, err := Generate(cfg.Size, cfg.Seed)
	if err != nil {
		return r, err
	}
	o := NewOracle(d)
	scenarios, err := Scenarios(d, o)
	if err != nil {
		return r, err
	}
	for _, s := range scenarios {
		switch s.Name {
		case ListHeavy:
			r.Heavy = s.Questions[0].User
		case ListRegular:
			r.Regular = s.Questions[0].User
		}
	}
	if err := cfg.fill(ctx, d, o, &r); err != nil {
		return r, err
	}
	for _, clients := range cfg.Clients {
		if err := cfg.measure(ctx, scenarios, clients, &r); err != nil {
			return r, fmt.Errorf("%d clients: %w", clients, err)
		}
	}
	return r, nil
}

// open opens the database with as many readers as there are clients.
func (cfg *Config) open(ctx context.Context, clients int) (*Store, *store.DB, error) {
	opts := cfg.Options
	opts.Readers = max(clients, 1)
	db, err := store.Open(ctx, cfg.Engine.URL(cfg.Dir), &opts)
	if err != nil {
		return nil, nil, err
	}
	s, err := New(db)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return s, db, nil
}

// fill makes the database and verifies it.
func (cfg *Config) fill(ctx context.Context, d *Data, o *Oracle, r *Report) (err error) {
	s, db, err := cfg.open(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r.Engine = db.Engine().Info()
	if r.Settings, err = db.Settings(ctx); err != nil {
		return err
	}
	if r.Ingest, err = s.Ingest(ctx, d, cfg.Batch); err != nil {
		return err
	}
	if r.Closure, err = s.BuildClosure(ctx); err != nil {
		return fmt.Errorf("closure: %w", err)
	}
	r.ClosureRows = o.Closure()
	cfg.Log("ingest of %d objects in %s, closure of %d rows in %s", r.Ingest.Objects,
		r.Ingest.Took.Round(time.Millisecond), r.ClosureRows, r.Closure.Round(time.Millisecond))
	if err := bench.FoldLog(ctx, db); err != nil {
		return err
	}
	if r.Stats, err = db.Stats(ctx); err != nil {
		return err
	}
	for _, c := range cfg.Closures {
		if err := s.Verify(ctx, d, o, c, cfg.Verify); err != nil {
			return err
		}
	}
	return nil
}

// measure runs every scenario with a number of clients.
func (cfg *Config) measure(ctx context.Context, scenarios []Scenario, clients int, r *Report) (err error) {
	s, db, err := cfg.open(ctx, clients)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, c := range cfg.Closures {
		for i := range scenarios {
			m, err := s.Measure(ctx, MeasureConfig{Scenario: &scenarios[i], Closure: c, Clients: clients, Duration: cfg.Duration})
			if m.Took > 0 {
				r.Measurements = append(r.Measurements, m)
			}
			if err != nil {
				return fmt.Errorf("scenario %s, closure %s: %w", scenarios[i].Name, c, err)
			}
			cfg.Log("%d clients, %s, %s: p95 %s, %.0f/s", clients, c, m.Scenario, m.Latency.P95, m.Rate)
		}
	}
	return nil
}
