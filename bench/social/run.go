package social

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store/driver"
)

// Hopeless is the success below which phases of a higher rate are not worth running:
// the machine ends there.
const Hopeless = 0.9

// RunConfig says what Run does.
type RunConfig struct {
	Script *Script
	Phase  Phase  // of the script or another
	Seed   uint64 // of arrivals and of what is asked
}

// Outcome is what a phase did.
type Outcome struct {
	*pace.Outcome

	// FirstError is the first error of a request that was counted; nil when there
	// was none.
	FirstError error
}

// Success returns the part (0…1) of the requests that were due that ended well
// and with a right answer.
func (o *Outcome) Success() float64 {
	if o.Scheduled == 0 {
		return 0
	}
	return float64(o.Count) / float64(o.Scheduled)
}

// Merged returns the latencies of all kinds of requests whose names begin with a
// word: "check", "lookup" or "write". Nil when there are none.
func (o *Outcome) Merged(word string) *latency.Recorder {
	var all *latency.Recorder
	for _, k := range o.Kinds {
		if strings.HasPrefix(k.Name, word+"-") && k.Latency.Count() > 0 {
			if all == nil {
				all = latency.NewRecorder()
			}
			all.Merge(k.Latency)
		}
	}
	return all
}

// Run sends the requests of a phase to a store that the oracle knows, and
// compares every answer. It ends with ErrMismatch at the first wrong one; a
// request that the engine refuses is counted as failed. The outcome is never nil.
//
// The database must have been opened with as many readers as the script has
// connections.
func Run(ctx context.Context, s *Store, o *Oracle, cfg RunConfig) (*Outcome, error) {
	r := newRunner(s, o, cfg)
	arrivals := pace.Fixed(cfg.Phase.Rate)
	if cfg.Script.Poisson {
		arrivals = pace.Poisson(cfg.Phase.Rate, cfg.Seed)
	}
	out, err := pace.OpenLoop(ctx, pace.OpenConfig{
		Arrivals: arrivals, Workers: cfg.Script.Connections,
		Duration: cfg.Phase.Duration, WarmUp: cfg.Script.WarmUp, MaxLag: cfg.Script.GiveUp, Drain: cfg.Script.GiveUp,
		Seed: cfg.Seed, OnError: r.tolerate, Wait: pace.Frugal,
	}, r.do)
	return &Outcome{Outcome: out, FirstError: r.first}, errors.Join(err, r.close())
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

type runner struct {
	s      *Store
	o      *Oracle
	script *Script
	active active
	views  []held // by connection

	names []string
	until []float64 // the weights of the steps up to each, summed up

	mu    sync.Mutex
	first error
}

// held is a view that a connection keeps for a while.
type held struct {
	*View
	since time.Time
}

func newRunner(s *Store, o *Oracle, cfg RunConfig) *runner {
	r := &runner{
		s: s, o: o, script: cfg.Script, active: newActive(o.g, cfg.Script.Active),
		views: make([]held, cfg.Script.Connections),
	}
	sum := 0.0
	for _, step := range cfg.Script.Steps {
		sum += step.Weight
		r.until = append(r.until, sum)
		r.names = append(r.names, step.Name())
	}
	return r
}

// tolerate implements pace.OpenConfig.OnError. After an unknown outcome the
// oracle does not know what is right.
func (r *runner) tolerate(err error) bool {
	if errors.Is(err, bench.ErrMismatch) || errors.Is(err, driver.ErrUnknownOutcome) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first = err
	}
	return true
}

func (r *runner) close() error {
	var err error
	for _, v := range r.views {
		if v.View != nil {
			err = errors.Join(err, v.Close())
		}
	}
	return err
}

// choose returns the index of a step by weight.
func (r *runner) choose(rand *rand.Rand) int {
	at := rand.Float64() * r.until[len(r.until)-1]
	for i, until := range r.until {
		if at < until {
			return i
		}
	}
	return len(r.until) - 1
}

// do is one request.
func (r *runner) do(ctx context.Context, s *pace.Step) error {
	i := r.choose(s.Rand)
	s.Kind = r.names[i]
	step := &r.script.Steps[i]
	switch {
	case step.Write != "":
		return r.write(ctx, s, step.Write)
	case step.Lookup == lookupSubjects:
		return r.lookupSubjects(ctx, s)
	case step.Lookup != "":
		return r.lookupContent(ctx, s, step.Limit)
	}
	return r.check(ctx, s, step.Check)
}

func (r *runner) write(ctx context.Context, s *pace.Step, t Toggle) error {
	if t == ToggleVisibility {
		return r.s.Write(ctx, r.o, t, r.active.pick(s.Rand, Content), Everybody)
	}
	object := r.active.pick(s.Rand, User)
	return r.s.Write(ctx, r.o, t, object, r.active.other(s.Rand, object))
}

func (r *runner) check(ctx context.Context, s *pace.Step, kind string) error {
	viewer, object := r.active.pick(s.Rand, User), r.active.pick(s.Rand, kindOf(kind))
	var may bool
	span, err := r.read(ctx, s, func(v *View) (err error) {
		may, err = v.Check(ctx, viewer, object)
		return err
	})
	if err != nil {
		return err
	}
	return r.o.JudgeCheck(span, viewer, object, may)
}

func (r *runner) lookupContent(ctx context.Context, s *pace.Step, limit int) error {
	viewer, from := r.active.pick(s.Rand, User), r.active.pick(s.Rand, Content)
	var got []Object
	span, err := r.read(ctx, s, func(v *View) (err error) {
		got, err = v.LookupContent(ctx, viewer, from, limit)
		return err
	})
	if err != nil {
		return err
	}
	return r.o.JudgeContent(span, viewer, from, limit, got)
}

func (r *runner) lookupSubjects(ctx context.Context, s *pace.Step) error {
	content := r.active.pick(s.Rand, Content)
	var got []Object
	span, err := r.read(ctx, s, func(v *View) (err error) {
		got, err = v.LookupSubjects(ctx, content)
		return err
	})
	if err != nil {
		return err
	}
	return r.o.JudgeSubjects(span, content, got)
}

// read runs f on a view that is new, or as old as the script allows, and stops
// the step's clock.
func (r *runner) read(ctx context.Context, s *pace.Step, f func(*View) error) (Span, error) {
	v, err := r.view(ctx, s.Worker)
	if err != nil {
		return Span{}, err
	}
	err = f(v)
	if r.script.Staleness == 0 || err != nil {
		r.views[s.Worker].View = nil
		err = errors.Join(err, v.Close())
	}
	s.Stop()
	return v.Span, err
}

func (r *runner) view(ctx context.Context, worker int) (*View, error) {
	h := &r.views[worker]
	if h.View != nil && time.Since(h.since) < r.script.Staleness {
		return h.View, nil
	}
	if h.View != nil {
		old := h.View
		h.View = nil
		if err := old.Close(); err != nil {
			return nil, err
		}
	}
	v, err := r.s.View(ctx, r.o)
	if err != nil {
		return nil, err
	}
	*h = held{v, time.Now()}
	return v, nil
}

func kindOf(name string) Kind {
	for k, n := range kindNames {
		if n == name {
			return Kind(k)
		}
	}
	return Content
}
