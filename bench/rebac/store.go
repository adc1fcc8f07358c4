package rebac

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
)

// Closure is how indirect group memberships are found.
type Closure string

// The two ways.
const (
	Materialised Closure = "materialised" // a table, built after ingest
	OnTheFly     Closure = "on-the-fly"   // a recursive query in each question
)

// Closures are both ways.
var Closures = []Closure{Materialised, OnTheFly}

// ingestBatch is how many rows a transaction loads, as in the document.
const ingestBatch = 10_000

// Load creates the tables in an empty database, loads a data set, and then
// fills the closure table by one statement. It returns how long both took,
// including commits and planner statistics. It fails with bench.ErrMismatch
// when the number of stored rows is wrong.
func Load(ctx context.Context, db *store.DB, d *Data) (ingest, closure time.Duration, err error) {
	tables, err := graph.Open(db, "rebac")
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	err = tables.Fill(ctx, ingestBatch, d.tables()...)
	ingest = time.Since(start)
	if err == nil {
		err = tables.Expect(ctx, "count_acl", d.Size.Entries())
	}
	start = time.Now()
	if err == nil {
		texts := []string{tables.Statements["clear_closure"], tables.Statements["build_closure"]}
		err = tables.Exec(ctx, append(texts, tables.Analyze()...)...)
	}
	return ingest, time.Since(start), err
}

// tables returns the rows in loading order, the access lists last.
func (d *Data) tables() []graph.Rows {
	name := func(kind string) func(i int) []any {
		return func(i int) []any { return []any{int64(i + 1), fmt.Sprintf("%s-%d", kind, i+1)} }
	}
	org := func(list []int) iter.Seq[[]any] {
		return count(len(list), func(i int) []any { return []any{int64(i + 1), int64(list[i])} })
	}
	return []graph.Rows{
		graph.Table("rebac_users", count(d.Size.Users, name("user")), "id", "name"),
		graph.Table("rebac_orgs", count(d.Size.Orgs, name("org")), "id", "name"),
		graph.Table("rebac_members", roles(d.Members, d.Admins), "user_id", "org", "role"),
		graph.Table("rebac_groups", org(d.GroupOrg), "id", "org"),
		graph.Table("rebac_group_members", roles(d.GroupMembers, d.GroupManagers), "user_id", "grp", "role"),
		graph.Table("rebac_hierarchy", count(len(d.Hierarchy), func(i int) []any {
			return []any{int64(d.Hierarchy[i].Child), int64(d.Hierarchy[i].Parent)}
		}), "child", "parent"),
		graph.Table("rebac_resources", org(d.ResourceOrg), "id", "org"),
		graph.Table("rebac_acl", func(yield func([]any) bool) {
			row := make([]any, 3)
			for e := range d.Entries() {
				row[0], row[1], row[2] = int64(e.Resource), int64(e.Relation), int64(e.Subject)
				if !yield(row) {
					return
				}
			}
		}, "resource", "relation", "subject"),
	}
}

// count yields the rows from 0 to n-1.
func count(n int, row func(i int) []any) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for i := range n {
			if !yield(row(i)) {
				return
			}
		}
	}
}

// roles yields users with their group or organization and their role: 0 is a
// member, 1 a manager or admin.
func roles(byRole ...[][]int) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for role, places := range byRole {
			for i, users := range places {
				for _, user := range users {
					if !yield([]any{int64(user), int64(i + 1), int64(role)}) {
						return
					}
				}
			}
		}
	}
}

// asker is a worker with its open read view.
type asker struct {
	*graph.View
	got  Answer
	take func(id int64) // adds to got
}

// maxErrors is the number of errors after which the engine counts as failing
// permanently.
const maxErrors = 100

// Ask asks the questions of a scenario in turn, one per operation of a loop.
// Each worker keeps a read view, so the database must have as many readers.
// Errors of the engine are counted; a wrong answer ends the loop with
// bench.ErrMismatch. The outcome is nil when the loop could not begin.
func Ask(ctx context.Context, db *store.DB, scenario *Scenario, c Closure, loop pace.Config) (out *pace.Outcome, err error) {
	tables, err := graph.Open(db, "rebac")
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s_%s", scenario.Kind, scenario.Permission)
	if c == OnTheFly {
		name += "_fly"
	}
	text := tables.Statements[name]
	if text == "" {
		return nil, fmt.Errorf("schema rebac has no statement %s", name)
	}
	// Prepare the arguments of each question outside of the measured time.
	args := make([][]any, len(scenario.Questions))
	for i, q := range scenario.Questions {
		for n := range strings.Count(text, "?") {
			id := q.User
			if scenario.Kind == ListUsers || scenario.Kind == Check && n%2 == 0 {
				id = q.Resource
			}
			args[i] = append(args[i], int64(id))
		}
	}
	failed := 0
	loop.OnError = func(err error) bool {
		failed++
		return !errors.Is(err, bench.ErrMismatch) && failed < maxErrors
	}
	askers := make([]asker, max(loop.Workers, 1))
	for i := range askers {
		a := &askers[i]
		if a.View, err = tables.View(ctx); err != nil {
			return nil, err
		}
		a.take = func(id int64) { a.got.add(id) }
		defer func() { err = errors.Join(err, a.Close()) }()
	}
	calm := context.WithoutCancel(ctx) // some engines start a goroutine for each question that can be cancelled
	return pace.Loop(ctx, loop, func(_ context.Context, step *pace.Step) error {
		step.Kind = scenario.Name
		a, i := &askers[step.Worker], int(step.N%int64(len(args)))
		a.got = Answer{}
		err := a.IDs(calm, text, args[i], a.take)
		if q := &scenario.Questions[i]; err == nil && a.got != q.Want {
			err = fmt.Errorf("%w: %s with closure %s, user %d, resource %d: %d found, want %d (or others)",
				bench.ErrMismatch, scenario.Name, c, q.User, q.Resource, a.got.Count, q.Want.Count)
		}
		return err
	})
}
