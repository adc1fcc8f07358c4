package social

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
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
func (o *Outcome) Success() float64 { return float64(o.Count) / float64(max(o.Scheduled, 1)) }

// Merged returns the latencies of all kinds of requests whose names begin with a
// word: "check", "lookup" or "write". Nil when there are none.
func (o *Outcome) Merged(word string) *latency.Recorder {
	all := latency.NewRecorder()
	for _, k := range o.Kinds {
		if strings.HasPrefix(k.Name, word+"-") {
			all.Merge(k.Latency)
		}
	}
	if all.Count() == 0 {
		return nil
	}
	return all
}

// Figures returns what is held against the service levels: the success, and the
// latencies of checks, look-ups and writes.
func (o *Outcome) Figures() (metrics []result.Metric, latencies []result.Distribution) {
	metrics = []result.Metric{{Value: o.Success(), Unit: successUnit}}
	in := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, word := range []string{"check", "lookup", "write"} {
		if rec := o.Merged(word); rec != nil {
			d := rec.Distribution(word)
			latencies = append(latencies, d)
			metrics = append(metrics, result.Metric{Value: in(d.P50), Unit: word + "-p50-ms"}, result.Metric{Value: in(d.P95), Unit: word + "-p95-ms"})
		}
	}
	return metrics, latencies
}

// Describe adds the figures of a phase to a record.
func (o *Outcome) Describe(r *result.Record) {
	metrics, latencies := o.Figures()
	r.Metrics = append(append(r.Metrics, o.Metrics()...), metrics...)
	r.Latencies = append(append(r.Latencies, o.Distributions()...), latencies...)
	if o.FirstError != nil {
		r.Notes = append(r.Notes, "the first failed request: "+o.FirstError.Error())
	}
}

// Run sends the requests of a phase to a store that the oracle knows, and
// compares every answer. It ends with ErrMismatch at the first wrong one; a
// request that the engine refuses is counted as failed. The outcome is never nil.
//
// The database must have been opened with as many readers as the script has
// connections.
func Run(ctx context.Context, s *Store, o *Oracle, cfg RunConfig) (*Outcome, error) {
	r := &runner{
		store: s, oracle: o, script: cfg.Script, active: newActive(o.g, float64(cfg.Script.Active)),
		views: make([]*View, cfg.Script.Connections),
	}
	arrivals := pace.Poisson(cfg.Phase.Rate, cfg.Seed)
	if cfg.Script.Arrivals == "fixed" {
		arrivals = pace.Fixed(cfg.Phase.Rate)
	}
	out, err := pace.Loop(ctx, pace.Config{
		Arrivals: arrivals, Workers: cfg.Script.Connections,
		Duration: cfg.Phase.Duration, WarmUp: cfg.Script.WarmUp, MaxLag: cfg.Script.GiveUp, Drain: cfg.Script.GiveUp,
		Seed: cfg.Seed, OnError: r.tolerate, Wait: pace.Frugal,
	}, r.do)
	for i := range r.views {
		err = errors.Join(err, r.drop(i))
	}
	return &Outcome{Outcome: out, FirstError: r.first}, err
}

type runner struct {
	store  *Store
	oracle *Oracle
	script *Script
	active active
	views  []*View // by connection
	first  error
}

// tolerate implements pace.Config.OnError. After an unknown outcome the
// oracle does not know what is right.
func (r *runner) tolerate(err error) bool {
	if errors.Is(err, bench.ErrMismatch) || errors.Is(err, driver.ErrUnknownOutcome) {
		return false
	}
	r.first = cmp.Or(r.first, err)
	return true
}

// choose returns a step by weight.
func (s *Script) choose(r *rand.Rand) *Step {
	sum := 0.0
	for i := range s.Steps {
		sum += s.Steps[i].Weight
	}
	at := r.Float64() * sum
	for i := range s.Steps {
		if at -= s.Steps[i].Weight; at < 0 {
			return &s.Steps[i]
		}
	}
	return &s.Steps[len(s.Steps)-1]
}

// do is one request.
func (r *runner) do(ctx context.Context, s *pace.Step) error {
	step := r.script.choose(s.Rand)
	s.Kind = step.Name()
	switch step.Write {
	case "":
		return r.ask(ctx, s, r.active.question(s.Rand, step))
	case ToggleVisibility:
		return r.store.Write(ctx, r.oracle, step.Write, r.active.pick(s.Rand, Content), Everybody)
	}
	object := r.active.pick(s.Rand, User)
	return r.store.Write(ctx, r.oracle, step.Write, object, r.active.other(s.Rand, object))
}

// ask asks on a view that is new, or as old as the script allows, and stops the
// step's clock before it judges the answer.
func (r *runner) ask(ctx context.Context, s *pace.Step, q Question) error {
	v, err := r.view(ctx, s.Worker)
	if err != nil {
		return err
	}
	got, err := v.Ask(ctx, q)
	if r.script.Staleness == 0 || err != nil {
		err = errors.Join(err, r.drop(s.Worker))
	}
	s.Stop()
	if err != nil {
		return err
	}
	return r.oracle.Judge(v.Span, q, got)
}

// view returns a connection's view, which it keeps for a while.
func (r *runner) view(ctx context.Context, connection int) (*View, error) {
	if v := r.views[connection]; v != nil && time.Since(v.opened) < r.script.Staleness {
		return v, nil
	}
	if err := r.drop(connection); err != nil {
		return nil, err
	}
	v, err := r.store.View(ctx, r.oracle)
	if err == nil {
		r.views[connection] = v
	}
	return v, err
}

// drop closes a connection's view, if there is one.
func (r *runner) drop(connection int) error {
	v := r.views[connection]
	if v == nil {
		return nil
	}
	r.views[connection] = nil
	return v.Close()
}
