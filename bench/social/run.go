package social

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/driver"
)

// The service levels that AuthZed's test had to meet.
const (
	CheckLimit   = 25 * time.Millisecond  // 95th percentile of checks
	WriteLimit   = 100 * time.Millisecond // 95th percentile of writes
	SuccessLimit = 0.999                  // part of the requests
)

// RunConfig says what Run does.
type RunConfig struct {
	Script *Script
	Phase  Phase      // of the script or another; without a rate each connection asks when it has its answer
	Loop   bench.Loop // if not nil, how many requests there are at most
	Seed   uint64     // of arrivals and of what is asked
}

// Run sends the requests of a phase to a store that the oracle knows, and
// compares every answer. It ends with ErrMismatch at the first wrong one; a
// request that the engine refuses is counted as failed. The outcome is never nil.
//
// The database must have been opened with as many readers as the script has
// connections.
func Run(ctx context.Context, s *Store, o *Oracle, cfg RunConfig) (*pace.Outcome, error) {
	r := &runner{
		store: s, oracle: o, script: cfg.Script, active: newActive(o.g, float64(cfg.Script.Active)),
		views: make([]*View, cfg.Script.Connections),
	}
	loop := pace.Config{
		Workers: cfg.Script.Connections, Duration: cfg.Phase.Duration, WarmUp: cfg.Script.WarmUp,
		MaxLag: cfg.Script.GiveUp, Drain: cfg.Script.GiveUp, Seed: cfg.Seed, OnError: tolerate, Frugal: true,
	}
	if cfg.Loop != nil {
		loop.More = cfg.Loop
	}
	switch {
	case cfg.Phase.Rate == 0:
	case cfg.Script.Arrivals == "fixed":
		loop.Arrivals = pace.Fixed(cfg.Phase.Rate)
	default:
		loop.Arrivals = pace.Poisson(cfg.Phase.Rate, cfg.Seed)
	}
	out, err := pace.Loop(ctx, loop, r.do)
	for i := range r.views {
		err = errors.Join(err, r.drop(i))
	}
	return out, err
}

// tolerate implements pace.Config.OnError. After an unknown outcome the
// oracle does not know what is right.
func tolerate(err error) bool {
	return !errors.Is(err, bench.ErrMismatch) && !errors.Is(err, driver.ErrUnknownOutcome)
}

// Sums returns the latencies of all checks, look-ups and writes, of those that there were.
func Sums(o *pace.Outcome) (list []pace.Kind) {
	for _, word := range []string{"check", "lookup", "write"} {
		all := latency.NewRecorder()
		for _, k := range o.Kinds {
			if strings.HasPrefix(k.Name, word+"-") {
				all.Merge(k.Latency)
			}
		}
		if all.Count() > 0 {
			list = append(list, pace.Kind{Name: word, Latency: all})
		}
	}
	return list
}

// Metrics returns what is held against the service levels, the part of the requests that
// ended well and the latencies of Sums, and how many levels were missed.
func Metrics(o *pace.Outcome) (list []latency.Metric) {
	list = append(list, latency.Metric{Value: o.Success(), Unit: "share-success"})
	missed := 0.0
	if o.Success() < SuccessLimit {
		missed++
	}
	limits := map[string]time.Duration{"check": CheckLimit, "write": WriteLimit}
	for _, k := range Sums(o) {
		p95 := k.Latency.Quantile(95)
		if limit := limits[k.Name]; limit > 0 && p95 >= limit {
			missed++
		}
		list = append(list, latency.Milliseconds(k.Latency.Quantile(50), k.Name+"-p50-ms"), latency.Milliseconds(p95, k.Name+"-p95-ms"))
	}
	return append(list, latency.Metric{Value: missed, Unit: "levels-missed"})
}

// runner sends requests.
type runner struct {
	store  *Store
	oracle *Oracle
	script *Script
	active active
	views  []*View // by connection
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
