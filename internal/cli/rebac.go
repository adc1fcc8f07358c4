package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// rebacFlags say what the permission benchmark measures; each engine's process
// gets the same.
type rebacFlags struct {
	Size       string        `help:"How much data: tiny, small or full (that of the user's document), or several times one as in fullx4." default:"small"`
	Clients    []int         `help:"Numbers of clients that ask at once." default:"1,8,32"`
	Closures   []string      `help:"How groups in groups are found: by a table, by a recursive query." default:"materialised,on-the-fly" enum:"materialised,on-the-fly"`
	Duration   time.Duration `help:"Length of each measurement." default:"5s"`
	Seed       uint64        `help:"Of data and questions." default:"1"`
	Batch      int           `help:"Rows in a transaction of ingest." default:"10000"`
	Durability string        `help:"What a commit promises: durable, relaxed or unsafe." default:"durable"`
	Memory     string        `help:"Memory that an engine may use for caching." default:"256MiB"`
	Dir        string        `help:"Directory for the databases, which are removed afterwards; the system's temporary directory when not given." type:"existingdir"`
}

// args returns the flags as a command line, but for the directory: a child is given one.
func (f *rebacFlags) args() []string {
	clients := make([]string, len(f.Clients))
	for i, n := range f.Clients {
		clients[i] = strconv.Itoa(n)
	}
	return []string{
		"--size=" + f.Size, "--clients=" + strings.Join(clients, ","), "--closures=" + strings.Join(f.Closures, ","),
		"--duration=" + f.Duration.String(), fmt.Sprintf("--seed=%d", f.Seed), fmt.Sprintf("--batch=%d", f.Batch),
		"--durability=" + f.Durability, "--memory=" + f.Memory,
	}
}

// config checks the flags and returns the run, but for the engine.
func (f *rebacFlags) config() (cfg rebac.Config, err error) {
	if cfg.Size, err = rebac.ParseSize(f.Size); err != nil {
		return cfg, usageError{fmt.Errorf("--size: %w", err)}
	}
	if cfg.Options.Durability, err = driver.ParseDurability(f.Durability); err != nil {
		return cfg, usageError{err}
	}
	if cfg.Options.Memory, err = store.ParseBytes(f.Memory); err != nil {
		return cfg, usageError{fmt.Errorf("--memory: %w", err)}
	}
	if len(f.Clients) == 0 || slices.Min(f.Clients) < 1 || f.Duration <= 0 || f.Batch < 1 {
		return cfg, usageError{errors.New("--clients, --duration and --batch must be positive")}
	}
	cfg.Seed, cfg.Batch, cfg.Clients, cfg.Duration = f.Seed, f.Batch, f.Clients, f.Duration
	for _, name := range f.Closures {
		cfg.Closures = append(cfg.Closures, rebac.Closure(name))
	}
	return cfg, nil
}

// authzRebacCmd runs the permission benchmark on engines, one after the other,
// each in a process of its own.
type authzRebacCmd struct {
	rebacFlags
	Engines []string `help:"Engines to measure." default:"sqlite,libsql,duckdb,postgres"`
	JSON    bool     `help:"Print the measurements as JSON."`
	Out     string   `help:"Directory of a result set that the measurements are added to, for report, decide and benchstat." type:"path"`
}

// rebacOutcome is an engine's report, or why there is none. With an error the
// report holds what was measured before.
type rebacOutcome struct {
	Name   string       `json:"name"`
	Error  string       `json:"error,omitempty"`
	Report *rebacReport `json:"report,omitempty"`
}

// rebacReport is what an engine's process prints.
type rebacReport struct {
	rebac.Report
	Started  time.Time      `json:"started"`
	Manifest bench.Manifest `json:"manifest"`
}

// Run measures. It prints what it has when an engine fails, and fails then.
func (c *authzRebacCmd) Run(e *env) error {
	if _, err := c.config(); err != nil {
		return err
	}
	if err := knownEngines(c.Engines); err != nil {
		return err
	}
	var outcomes []rebacOutcome
	var failed error
	for i, name := range c.Engines {
		start := time.Now()
		fmt.Fprintf(e.stderr, "%s: engine %d of %d\n", name, i+1, len(c.Engines))
		report := new(rebacReport)
		worker := child{engine: name, args: append([]string{"authz", "rebac-worker", "--engine=" + name}, c.args()...), dir: c.Dir, into: report}
		err := worker.run(e)
		if err := e.ctx.Err(); err != nil {
			return err
		}
		o := rebacOutcome{Name: name, Report: report}
		if report.Engine.Name == "" {
			o.Report = nil
		}
		if err != nil {
			o.Error = err.Error()
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		if err := c.keep(&o); err != nil {
			return err
		}
		fmt.Fprintf(e.stderr, "%s: done in %s\n", name, time.Since(start).Round(100*time.Millisecond))
		outcomes = append(outcomes, o)
	}
	if c.JSON {
		return errors.Join(printJSON(e.stdout, outcomes), failed)
	}
	return errors.Join(printRebac(e.stdout, outcomes), failed)
}

// keep adds a report to the result set.
func (c *authzRebacCmd) keep(o *rebacOutcome) (err error) {
	if c.Out == "" {
		return nil
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	set, err := result.Open(c.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if o.Error != "" {
		r := result.Record{Experiment: rebac.Experiment, Name: "Run", Started: time.Now().UTC(), Error: o.Error,
			Config: result.Config{{Key: "engine", Value: o.Name}}}
		if err := set.Append(&r); err != nil {
			return err
		}
	}
	if o.Report == nil {
		return nil
	}
	key, err := set.Manifest(&o.Report.Manifest)
	if err != nil {
		return err
	}
	records := o.Report.Records(o.Report.Started, key)
	for i := range records {
		if err := set.Append(&records[i]); err != nil {
			return err
		}
	}
	results, err := result.Read(c.Out)
	if err != nil {
		return err
	}
	return result.WriteBenchFile(c.Out, results)
}

// authzRebacWorkerCmd runs the permission benchmark on one engine in this process.
type authzRebacWorkerCmd struct {
	rebacFlags
	Engine string `required:"" help:"Engine to measure."`
}

// Run measures and prints a report as JSON, also when the run ended early.
func (c *authzRebacWorkerCmd) Run(e *env) (err error) {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(c.Dir, "varve-rebac-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg.Engine, cfg.Dir = bench.Engine{Name: c.Engine, File: databaseFiles[c.Engine]}, dir
	cfg.Verify = rebac.VerifyConfig{Checks: 500, Lists: 20}
	cfg.Log = func(format string, args ...any) { fmt.Fprintf(e.stderr, c.Engine+": "+format+"\n", args...) }
	report := rebacReport{Started: time.Now().UTC()}
	host, err := bench.ReadHost(dir)
	if err != nil {
		return err
	}
	report.Report, err = rebac.Run(e.ctx, cfg)
	r := &report.Report
	report.Manifest = bench.Manifest{
		Varve:  bench.ReadRevision(e.ctx),
		Engine: bench.EngineVersion{Name: r.Engine.Name, Version: r.Engine.Version, Library: r.Engine.Library},
		Layout: "rebac", Settings: r.Settings, Host: host,
		Options: bench.StoreOptions{Durability: cfg.Options.Durability, MemoryBytes: cfg.Options.Memory},
	}
	return errors.Join(err, json.NewEncoder(e.stdout).Encode(&report))
}
