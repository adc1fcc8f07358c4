package rebac

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/store"
)

// Closure says how the groups that a user is in through others are found.
type Closure string

// The ways of the closure.
const (
	Materialised Closure = "materialised" // a table, built after ingest
	OnTheFly     Closure = "on-the-fly"   // a recursive query in each question
)

// Closures are both.
var Closures = []Closure{Materialised, OnTheFly}

// ingestBatch is how many rows a transaction loads, as in the document.
const ingestBatch = 10_000

// Load makes the tables in an empty database and puts a data set into them; then it fills the
// table of the closure by one statement. It returns how long both took, with commits and the
// planner's statistics, and fails with bench.ErrMismatch when the rows in the store are not as
// many as those given.
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

// tables returns the rows in the order in which tables are filled, the access lists
// last.
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

// roles yields users with their place and role: 0 is a member, 1 a manager or admin.
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
