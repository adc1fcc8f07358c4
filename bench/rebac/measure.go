package rebac

import (
	"context"
	"errors"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
)

// warmUp bounds the questions that are asked before a measurement.
const warmUp = 300 * time.Millisecond

// MeasureConfig is a closed loop of clients that ask the questions of a scenario
// again and again.
type MeasureConfig struct {
	Scenario *Scenario
	Closure  Closure
	Clients  int           // zero means one; the store must have as many readers
	Duration time.Duration // zero means one second
}

// maxErrors ends a measurement whose engine fails for good.
const maxErrors = 100

// Measure asks for a time. Errors are counted; a wrong answer ends it with
// bench.ErrMismatch. The outcome is nil when it could not begin.
func (s *Store) Measure(ctx context.Context, cfg MeasureConfig) (out *pace.Outcome, err error) {
	cfg.Clients = max(cfg.Clients, 1)
	if cfg.Duration <= 0 {
		cfg.Duration = time.Second
	}
	askers := make([]*asker, 0, cfg.Clients)
	defer func() {
		for _, a := range askers {
			err = errors.Join(err, a.client.Close())
		}
	}()
	for range cfg.Clients {
		client, err := s.Client(ctx, cfg.Closure)
		if err != nil {
			return nil, err
		}
		askers = append(askers, client.asker(cfg.Scenario))
		if err := askers[len(askers)-1].warm(ctx, min(warmUp, cfg.Duration)/time.Duration(cfg.Clients)); err != nil {
			return nil, err
		}
	}
	failed := 0
	loop := pace.ClosedConfig{
		Clients: cfg.Clients, Duration: cfg.Duration,
		OnError: func(err error) bool {
			failed++
			return !errors.Is(err, bench.ErrMismatch) && failed < maxErrors
		},
	}
	calm := context.WithoutCancel(ctx) // some engines start a goroutine for each question that can be cancelled
	return pace.ClosedLoop(ctx, loop, func(_ context.Context, step *pace.Step) error {
		step.Kind = cfg.Scenario.Name
		return askers[step.Worker].ask(calm, int(step.N%int64(len(cfg.Scenario.Questions))))
	})
}

// warm asks unmeasured: each question once, as far as the time goes.
func (a *asker) warm(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	for i := range a.args {
		if err := a.ask(ctx, i); err != nil {
			return err
		}
		if time.Now().After(end) {
			break
		}
	}
	return nil
}

// Ask asks the questions of a scenario one after the other, an operation of the loop
// each, and fails with bench.ErrMismatch on a wrong answer.
func (s *Store) Ask(ctx context.Context, scenario *Scenario, c Closure, loop bench.Loop) (l latency.Summary, err error) {
	ctx = context.WithoutCancel(ctx)
	client, err := s.Client(ctx, c)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	a := client.asker(scenario)
	if err := a.ask(ctx, 0); err != nil {
		return l, err
	}
	rec := latency.NewRecorder()
	for i := 0; loop.Loop(); i++ {
		start := time.Now()
		if err := a.ask(ctx, i%len(a.args)); err != nil {
			return l, err
		}
		rec.Record(time.Since(start))
	}
	return rec.Summary(), nil
}
