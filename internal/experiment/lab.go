package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Options are what all experiments share. Every one of them is part of what a
// result depends on and is in its record or manifest.
type Options struct {
	Scale      float64           `json:"scale"`  // 1: the sizes of the user's documents
	Phase      time.Duration     `json:"phase"`  // length of a timed phase
	Repeat     int               `json:"repeat"` // runs of a configuration
	Seed       uint64            `json:"seed"`
	Durability driver.Durability `json:"durability"`
	Memory     int64             `json:"memory"`          // bytes that an engine may use for caching
	Layouts    []string          `json:"layouts"`         // instead of an experiment's own
	Sizes      []float64         `json:"sizes,omitempty"` // scales of the growth experiment, instead of parts of Scale
	Rates      []float64         `json:"rates,omitempty"` // rows a second of sustained writes, 0 for as fast as possible, instead of D1's own
	Bare       bool              `json:"bare,omitempty"`  // the base profile with the smallest payloads
	Loaded     float64           `json:"loaded"`          // part of the base profile that a store holds before commits begin
	Retry      bool              `json:"retry,omitempty"` // do again what is in Lab.Failed

	Permissions *PermissionOptions `json:"permissions,omitempty"`
	Social      *SocialOptions     `json:"social,omitempty"`
}

// Lab is where an experiment runs: one engine, in a process of its own.
type Lab struct {
	Options
	Engine bench.Engine
	Cache  *bench.Cache

	// Set takes the records.
	Set *result.Writer

	// Failed are the keys of records that an earlier run failed at.
	Failed map[string]bool

	// Log is called with what is being measured.
	Log func(format string, args ...any)

	experiment string
}

// Run runs an experiment.
func (l *Lab) Run(ctx context.Context, e Experiment) error {
	l.experiment = e.ID
	if err := e.Run(ctx, l); err != nil {
		return fmt.Errorf("%s: %w", e.ID, err)
	}
	return nil
}

// layouts returns those that were asked for, or an experiment's own.
func (l *Lab) layouts(own ...string) []string {
	if len(l.Layouts) > 0 {
		return l.Layouts
	}
	return own
}

// scaled returns a size of the user's documents at the lab's scale, at least a
// minimum below which nothing can be seen.
func (l *Lab) scaled(size, minimum int) int {
	return max(int(float64(size)*l.Scale), minimum)
}

// storeOptions are those of every store that the lab opens.
func (l *Lab) storeOptions() *store.Options {
	return &store.Options{Durability: l.Durability, Memory: l.Memory}
}

// config begins the configuration of a record.
func (l *Lab) config(pairs ...string) result.Config {
	c := result.Config{{Key: "engine", Value: l.Engine.Name}}
	for i := 0; i+1 < len(pairs); i += 2 {
		c = c.With(pairs[i], pairs[i+1])
	}
	return c
}

// measure runs f for each repetition that the set does not have yet, and stores
// a record of it. What f fails with is in the record, and so is what it had
// measured before; only an end of ctx or of the set's file ends the experiment.
func (l *Lab) measure(ctx context.Context, name string, config result.Config, f func(ctx context.Context, r *result.Record) error) error {
	for repeat := range max(l.Repeat, 1) {
		r := &result.Record{Experiment: l.experiment, Name: name, Config: config, Repeat: repeat}
		if l.Set.Has(r.Key(), repeat) && !l.Failed[r.Key()] {
			continue
		}
		l.Log("%s %s/%s run %d", r.Experiment, r.Name, r.Config, repeat+1)
		r.Started = time.Now().UTC()
		err := f(ctx, r)
		r.Took = time.Since(r.Started)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errSkip) {
			l.Log("%s %s/%s: %v", r.Experiment, r.Name, r.Config, err)
			return nil
		}
		if err != nil {
			r.Error = err.Error()
			l.Log("%s %s/%s: %v", r.Experiment, r.Name, r.Config, err)
		}
		if err := l.Set.Append(r); err != nil {
			return err
		}
	}
	return nil
}

// errSkip: the engine does not have what a configuration asks for.
var errSkip = errors.New("skipped")

// supports skips a configuration whose durability the engine does not have.
func (l *Lab) supports(d driver.Durability) error {
	linked, ok := driver.Lookup(l.Engine.Name)
	if ok && !slices.Contains(linked.Capabilities.Durabilities, d) {
		return fmt.Errorf("%w: engine %s has no durability %s", errSkip, l.Engine.Name, d)
	}
	return nil
}

// add adds a workload's latencies and figures to a record.
func add(r *result.Record, kind string, res bench.Result) {
	r.Metrics = append(r.Metrics, res.Metrics()...)
	r.Latencies = append(r.Latencies, res.Latency.Distribution(kind))
}

func itoa(n int) string { return strconv.Itoa(n) }

func ftoa(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
