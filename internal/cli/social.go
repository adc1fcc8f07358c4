package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// authzSocialCmd runs a load script over social graphs: a matrix of engines,
// relationships and rates. Each engine and size has a process of its own.
type authzSocialCmd struct {
	Engines       []string      `help:"Engines to measure." default:"sqlite,libsql,duckdb,postgres"`
	Relationships []int         `help:"Sizes of the graph." default:"100000"`
	QPS           []float64     `name:"qps" help:"Requests a second, one phase each, from low to high, instead of the script's phases."`
	Script        string        `help:"Load script: a file, or the name of one that comes with the program: authzed, lookups, ramp." default:"authzed"`
	Duration      time.Duration `help:"Length of each phase instead of the script's."`
	Durability    string        `help:"What a commit promises: durable, relaxed or unsafe." default:"durable"`
	Memory        string        `help:"Memory that an engine may use for caching." default:"256MiB"`
	Seed          uint64        `help:"Of the graph, of arrivals and of what is asked." default:"1"`
	Timeout       time.Duration `help:"Time after which an engine is ended at one size; its records so far are kept." default:"30m"`
	JSON          bool          `help:"Print the verdicts as JSON."`
	Out           string        `help:"Directory that keeps the records; none are kept when not given." type:"path"`
	Worker        string        `help:"Measure this engine in this process." hidden:""`
}

// Run runs the matrix, or one engine at one size when it is a worker. Missing
// the service levels is a result and no error.
func (c *authzSocialCmd) Run(e *env) (err error) {
	script, err := c.script()
	if err != nil {
		return usageError{err}
	}
	if err := c.check(); err != nil {
		return usageError{err}
	}
	if c.Worker != "" {
		return c.work(e, script)
	}
	if c.Out == "" {
		if c.Out, err = os.MkdirTemp("", "varve-social-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.Out)) }()
	}
	return c.matrix(e, script)
}

// script reads the script and replaces what the flags say otherwise.
func (c *authzSocialCmd) script() (*social.Script, error) {
	s, err := c.readScript()
	if err != nil {
		return nil, err
	}
	if len(c.QPS) > 0 {
		length := s.Phases[0].Duration
		s.Phases = nil
		for _, rate := range c.QPS {
			if !(rate > 0) || rate > 1e7 {
				return nil, fmt.Errorf("--qps: %v: give numbers above 0, at most 10,000,000", rate)
			}
			s.Phases = append(s.Phases, social.Phase{Rate: rate, Duration: length})
		}
	}
	if c.Duration < 0 {
		return nil, fmt.Errorf("--duration: %s: give one above 0", c.Duration)
	}
	for i := range s.Phases {
		if c.Duration > 0 {
			s.Phases[i].Duration = c.Duration
		}
	}
	return s, nil
}

// readScript takes the name of a script before a file of that name.
func (c *authzSocialCmd) readScript() (*social.Script, error) {
	if slices.Contains(social.Scripts(), c.Script) {
		return social.LoadScript(c.Script)
	}
	text, err := os.ReadFile(c.Script)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--script: %w; scripts of the program are %s", err, strings.Join(social.Scripts(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("--script: %w", err)
	}
	s, err := social.ParseScript(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Script, err)
	}
	return s, nil
}

func (c *authzSocialCmd) check() error {
	if err := knownEngines(c.Engines); err != nil {
		return err
	}
	for _, n := range c.Relationships {
		if n < social.MinRelationships || n > social.MaxRelationships {
			return fmt.Errorf("--relationships: %d: give numbers from %d to %d", n, social.MinRelationships, social.MaxRelationships)
		}
	}
	if _, err := driver.ParseDurability(c.Durability); err != nil {
		return err
	}
	if _, err := store.ParseBytes(c.Memory); err != nil {
		return fmt.Errorf("--memory: %w", err)
	}
	return nil
}

// matrix runs a worker for each engine and size.
func (c *authzSocialCmd) matrix(e *env, script *social.Script) error {
	start := time.Now()
	total := len(c.Engines) * len(c.Relationships)
	fmt.Fprintf(e.stderr, "social: script %s, %d phases: %s and the loading for each of %d stores\n",
		script.Name, len(script.Phases), script.Length().Round(time.Second), total)
	var report socialReport
	var failed error
	done := 0
	for _, n := range c.Relationships {
		for _, engine := range c.Engines {
			fmt.Fprintf(e.stderr, "social: %s with %d relationships (%d of %d, %s so far%s)\n", engine, n, done+1, total,
				time.Since(start).Round(time.Second), eta(start, done, total))
			part, err := c.runWorker(e, engine, n)
			if err := e.ctx.Err(); err != nil {
				return err
			}
			if err != nil {
				err = fmt.Errorf("%s with %d relationships: %w", engine, n, err)
				report.Errors = append(report.Errors, err.Error())
				failed = errors.Join(failed, err)
			}
			report.Verdicts = append(report.Verdicts, part.Verdicts...)
			report.Loads = append(report.Loads, part.Loads...)
			done++
		}
	}
	if c.JSON {
		return errors.Join(printJSON(e.stdout, report), failed)
	}
	return errors.Join(report.print(e.stdout), failed)
}

// runWorker measures an engine at one size in a process of its own.
func (c *authzSocialCmd) runWorker(e *env, engine string, relationships int) (report socialReport, err error) {
	worker := child{engine: engine, args: c.args(engine, relationships), cache: true, timeout: c.Timeout, into: &report}
	err = worker.run(e)
	return report, err
}

// args are those of a worker.
func (c *authzSocialCmd) args(engine string, relationships int) []string {
	list := []string{
		"authz", "social", "--worker=" + engine, "--relationships=" + strconv.Itoa(relationships), "--script=" + c.Script,
		"--duration=" + c.Duration.String(), "--durability=" + c.Durability, "--memory=" + c.Memory,
		"--seed=" + strconv.FormatUint(c.Seed, 10), "--out=" + c.Out,
	}
	for _, rate := range c.QPS {
		list = append(list, "--qps="+strconv.FormatFloat(rate, 'f', -1, 64))
	}
	return list
}

// work measures in this process and prints what came of it, also when it ends
// early.
func (c *authzSocialCmd) work(e *env, script *social.Script) (err error) {
	cfg := social.MeasureConfig{
		Engine: bench.Engine{Name: c.Worker, File: databaseFiles[c.Worker]}, Script: script, Durability: driver.Durability(c.Durability),
		Log: func(format string, args ...any) { fmt.Fprintf(e.stderr, "  "+format+"\n", args...) },
	}
	if cfg.Memory, err = store.ParseBytes(c.Memory); err != nil {
		return err
	}
	if cfg.Cache, err = bench.OpenCache(""); err != nil {
		return err
	}
	set, err := result.Open(c.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	start := time.Now()
	for _, n := range c.Relationships {
		cfg.Graph = social.Config{Relationships: n, Seed: c.Seed}
		if err = social.Measure(e.ctx, set, cfg); err != nil {
			break
		}
	}
	report, reading := readSocial(c.Out, start)
	if reading == nil {
		reading = printJSON(e.stdout, report)
	}
	return errors.Join(err, reading)
}
