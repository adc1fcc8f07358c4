package rebac

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
)

// asker asks the questions of a scenario in one read view, which it keeps open. It
// is for one goroutine at a time.
type asker struct {
	*graph.View
	scenario *Scenario
	closure  Closure
	text     string
	args     [][]any // of each question, so that asking does not make them
	got      Answer
	take     func(id int64)
}

// newAsker opens a view and asks a first question, which prepares the statement. The
// caller closes it.
func newAsker(ctx context.Context, tables *graph.Store, scenario *Scenario, c Closure) (*asker, error) {
	name := fmt.Sprintf("%s_%s", scenario.Kind, scenario.Permission)
	if c == OnTheFly {
		name += "_fly"
	}
	a := &asker{scenario: scenario, closure: c, text: tables.Statements[name]}
	if a.text == "" {
		return nil, fmt.Errorf("schema rebac has no statement %s", name)
	}
	a.take = func(id int64) { a.got.add(id) }
	n := strings.Count(a.text, "?")
	for _, q := range scenario.Questions {
		args := make([]any, n)
		for i := range args {
			args[i] = int64(q.User)
			if scenario.Kind == ListUsers || scenario.Kind == Check && i%2 == 0 {
				args[i] = int64(q.Resource)
			}
		}
		a.args = append(a.args, args)
	}
	var err error
	if a.View, err = tables.View(ctx); err != nil {
		return nil, err
	}
	if err := a.ask(ctx, 0); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// ask asks question i and compares the answer: ErrMismatch when it is another.
func (a *asker) ask(ctx context.Context, i int) error {
	a.got = Answer{}
	err := a.IDs(ctx, a.text, a.args[i], a.take)
	if q := &a.scenario.Questions[i]; err == nil && a.got != q.Want {
		err = fmt.Errorf("%w: %s with closure %s, user %d, resource %d: %d found, want %d (or others)",
			bench.ErrMismatch, a.scenario.Name, a.closure, q.User, q.Resource, a.got.Count, q.Want.Count)
	}
	return err
}

// maxErrors are of an engine that fails for good.
const maxErrors = 100

// Ask asks the questions of a scenario in turn, an operation of a loop each, of which the
// workers have views of their own; the database must have as many readers. Errors of the
// engine are counted; a wrong answer ends it with bench.ErrMismatch. The outcome is nil
// when it could not begin.
func Ask(ctx context.Context, db *store.DB, scenario *Scenario, c Closure, loop pace.Config) (out *pace.Outcome, err error) {
	tables, err := graph.Open(db, "rebac")
	if err != nil {
		return nil, err
	}
	failed := 0
	loop.OnError = func(err error) bool {
		failed++
		return !errors.Is(err, bench.ErrMismatch) && failed < maxErrors
	}
	askers := make([]*asker, max(loop.Workers, 1))
	for i := range askers {
		if askers[i], err = newAsker(ctx, tables, scenario, c); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, askers[i].Close()) }()
	}
	calm := context.WithoutCancel(ctx) // some engines start a goroutine for each question that can be cancelled
	return pace.Loop(ctx, loop, func(_ context.Context, step *pace.Step) error {
		step.Kind = scenario.Name
		return askers[step.Worker].ask(calm, int(step.N%int64(len(scenario.Questions))))
	})
}
