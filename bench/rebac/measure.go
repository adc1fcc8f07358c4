package rebac

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/probe"
)

// Rounds is into how many parts a measurement is cut, for Latency.RunsCV.
const Rounds = 5

// probeEvery is how often the processes' CPU time is read: it costs 0.1 ms.
const probeEvery = 100 * time.Millisecond

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

// Measurement is what was measured of one scenario.
type Measurement struct {
	Scenario string        `json:"scenario"`
	Closure  Closure       `json:"closure"`
	Clients  int           `json:"clients"`
	Latency  Latency       `json:"latency"`
	Errors   int           `json:"errors"`
	Error    string        `json:"error,omitempty"` // the first one
	Rate     float64       `json:"rate"`            // questions a second, all clients
	IDs      float64       `json:"ids"`             // in an answer, the mean
	CPU      time.Duration `json:"cpu_ns"`          // of 1,000 questions, this process and the engine's; 0 is unknown
	Took     time.Duration `json:"took_ns"`
}

// ErrorRate returns the share of questions that ended in an error, 0…1.
func (m *Measurement) ErrorRate() float64 {
	if m.Latency.Count+m.Errors == 0 {
		return 0
	}
	return float64(m.Errors) / float64(m.Latency.Count+m.Errors)
}

// maxErrors ends a measurement whose engine fails for good.
const maxErrors = 100

// Measure asks for a time. Errors are counted; a wrong answer ends it with
// bench.ErrMismatch.
func (s *Store) Measure(ctx context.Context, cfg MeasureConfig) (m Measurement, err error) {
	cfg.Clients = max(cfg.Clients, 1)
	if cfg.Duration <= 0 {
		cfg.Duration = time.Second
	}
	m = Measurement{Scenario: cfg.Scenario.Name, Closure: cfg.Closure, Clients: cfg.Clients}
	workers := make([]*worker, cfg.Clients)
	defer func() {
		for _, w := range workers {
			if w != nil {
				err = errors.Join(err, w.asker.client.Close())
			}
		}
	}()
	for i := range workers {
		client, err := s.Client(ctx, cfg.Closure)
		if err != nil {
			return m, err
		}
		workers[i] = &worker{asker: client.asker(cfg.Scenario), next: i * len(cfg.Scenario.Questions) / cfg.Clients}
	}
	if err := each(workers, func(w *worker) error { return w.warm(ctx, min(warmUp, cfg.Duration)) }); err != nil {
		return m, err
	}
	sampler := probe.Start(ctx, probe.Config{PIDs: s.processes(ctx), Interval: probeEvery})
	start := time.Now()
	err = each(workers, func(w *worker) error { return w.run(ctx, start, cfg.Duration) })
	m.Took = time.Since(start)
	used := sampler.Stop()
	m.collect(workers)
	if cores := coresUsed(used); m.Rate > 0 {
		m.CPU = time.Duration(cores / m.Rate * 1000 * float64(time.Second))
	}
	return m, err
}

// processes are this one and the engine's.
func (s *Store) processes(ctx context.Context) []int {
	pids := []int{os.Getpid()}
	if stats, err := s.db.Stats(ctx); err == nil {
		pids = append(pids, stats.EnginePIDs...)
	}
	return pids
}

// coresUsed returns how many cores were in use between the first and the last
// sample; 0 when that is not known.
func coresUsed(s *probe.Samples) float64 {
	if len(s.List) < 2 {
		return 0
	}
	first, last := s.List[0], s.List[len(s.List)-1]
	if first.CPU == nil || last.CPU == nil {
		return 0
	}
	return (*last.CPU - *first.CPU).Seconds() / last.At.Sub(first.At).Seconds()
}

// Ask asks the questions of a scenario one after the other, an operation of the loop
// each, and fails with bench.ErrMismatch on a wrong answer.
func (s *Store) Ask(ctx context.Context, scenario *Scenario, c Closure, loop bench.Loop) (l Latency, err error) {
	ctx = context.WithoutCancel(ctx) // some engines pay for one that can be cancelled
	client, err := s.Client(ctx, c)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	a := client.asker(scenario)
	if err := a.ask(ctx, 0); err != nil {
		return l, err
	}
	var samples []time.Duration
	for i := 0; loop.Loop(); i++ {
		start := time.Now()
		if err := a.ask(ctx, i%len(a.args)); err != nil {
			return l, err
		}
		samples = append(samples, time.Since(start))
	}
	return summarise(samples, nil), nil
}

// each runs f on all workers at once.
func each(workers []*worker, f func(w *worker) error) error {
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i := 1; i < len(workers); i++ {
		wg.Go(func() { errs[i] = f(workers[i]) })
	}
	errs[0] = f(workers[0])
	wg.Wait()
	return errors.Join(errs...)
}

// worker is one client with what it measured.
type worker struct {
	asker   *asker
	next    int
	samples []time.Duration
	rounds  [Rounds]struct {
		sum time.Duration
		n   int
	}
	ids    int
	errors int
	first  error
}

// warm asks unmeasured: each question once, as far as the time goes.
func (w *worker) warm(ctx context.Context, d time.Duration) error {
	ctx = context.WithoutCancel(ctx)
	end := time.Now().Add(d)
	for i := range w.asker.args {
		if err := w.asker.ask(ctx, i); err != nil {
			return err
		}
		if time.Now().After(end) {
			break
		}
	}
	return nil
}

// run asks until the time has passed or ctx is done. Engines get a context that
// cannot be cancelled, for which some would start a goroutine with each question.
func (w *worker) run(ctx context.Context, start time.Time, d time.Duration) error {
	calm := context.WithoutCancel(ctx)
	w.samples = make([]time.Duration, 0, 4096)
	for now := time.Now(); now.Sub(start) < d; {
		i := w.next % len(w.asker.args)
		w.next = i + 1
		err := w.asker.ask(calm, i)
		end := time.Now()
		took := end.Sub(now)
		round := &w.rounds[min(int(now.Sub(start)*Rounds/d), Rounds-1)]
		now = end
		switch {
		case errors.Is(err, bench.ErrMismatch):
			return err
		case err != nil:
			if err := w.failed(err); err != nil {
				return err
			}
			continue
		}
		round.sum += took
		round.n++
		w.ids += w.asker.got.Count
		if w.samples = append(w.samples, took); len(w.samples)&63 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return ctx.Err()
}

func (w *worker) failed(err error) error {
	if w.first == nil {
		w.first = err
	}
	if w.errors++; w.errors >= maxErrors {
		return fmt.Errorf("%d questions failed, the first: %w", w.errors, w.first)
	}
	return nil
}

// collect adds up what the workers did.
func (m *Measurement) collect(workers []*worker) {
	var samples []time.Duration
	var rounds []float64
	ids := 0
	for _, w := range workers {
		samples = append(samples, w.samples...)
		ids += w.ids
		m.Errors += w.errors
		if m.Error == "" && w.first != nil {
			m.Error = w.first.Error()
		}
	}
	for i := range Rounds {
		var sum time.Duration
		n := 0
		for _, w := range workers {
			sum += w.rounds[i].sum
			n += w.rounds[i].n
		}
		if n > 0 {
			rounds = append(rounds, float64(sum)/float64(n))
		}
	}
	m.Latency = summarise(samples, rounds)
	if m.Latency.Count > 0 {
		m.Rate = float64(m.Latency.Count) / m.Took.Seconds()
		m.IDs = float64(ids) / float64(m.Latency.Count)
	}
}
