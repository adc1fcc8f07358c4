package rebac

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
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

// DefaultBatch is how many rows are in a transaction of ingest, as in the
// document.
const DefaultBatch = 10_000

// Store is a data set in an open database.
type Store struct{ tables *graph.Store }

// New returns a store over a database, which is empty or holds what Ingest has
// put there. The caller closes the database.
func New(db *store.DB) (*Store, error) {
	tables, err := graph.Open(db, "rebac")
	return &Store{tables}, err
}

// BuildClosure fills the table of the closure anew by one statement, and returns
// how long that took, its commit and the statistics included.
func (s *Store) BuildClosure(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	texts := []string{s.tables.Statements["clear_closure"], s.tables.Statements["build_closure"]}
	err := s.tables.Exec(ctx, append(texts, s.tables.Analyze()...)...)
	return time.Since(start), err
}

// CheckClosure compares the size of the closure with the oracle's: ErrMismatch.
func (s *Store) CheckClosure(ctx context.Context, o *Oracle) error {
	return s.tables.Expect(ctx, "count_closure", o.Closure())
}

// IngestResult is what Ingest did.
type IngestResult struct {
	Objects int                 // rows of all relations
	Took    time.Duration       // all of it: rows, indexes and statistics
	Indexes time.Duration       // of that, for indexes and statistics
	Batches result.Distribution // transactions of entries of access lists
}

// Rate returns objects a second.
func (r *IngestResult) Rate() float64 { return float64(r.Objects) / r.Took.Seconds() }

// Ingest makes the tables and puts a data set into them by the engine's bulk path,
// batch rows in a transaction (zero means DefaultBatch); then it makes the indexes.
// It fails with bench.ErrMismatch when the rows in the store are not as many as
// those given.
func (s *Store) Ingest(ctx context.Context, d *Data, batch int) (r IngestResult, err error) {
	batch, start := cmp.Or(batch, DefaultBatch), time.Now()
	if err := s.tables.Create(ctx); err != nil {
		return r, err
	}
	for _, t := range d.tables() {
		took, err := s.tables.Load(ctx, t.table, batch, t.rows)
		if err != nil {
			return r, err
		}
		r.Batches = took.Distribution("batch") // the access lists are last
	}
	indexes := time.Now()
	if err := s.tables.Index(ctx); err != nil {
		return r, err
	}
	r.Took, r.Indexes, r.Objects = time.Since(start), time.Since(indexes), d.Size.Objects()
	return r, s.tables.Expect(ctx, "count_acl", d.Size.Entries())
}

// rows are those of one table.
type rows struct {
	table *driver.Table
	rows  iter.Seq[[]any]
}

// tables returns the tables in the order in which they are filled, the access
// lists last.
func (d *Data) tables() []rows {
	name := func(kind string) func(i int) []any {
		return func(i int) []any { return []any{int64(i + 1), fmt.Sprintf("%s-%d", kind, i+1)} }
	}
	org := func(list []int) func(i int) []any {
		return func(i int) []any { return []any{int64(i + 1), int64(list[i])} }
	}
	return []rows{
		{graph.Table("rebac_users", "id", "name"), count(d.Size.Users, name("user"))},
		{graph.Table("rebac_orgs", "id", "name"), count(d.Size.Orgs, name("org"))},
		{graph.Table("rebac_members", "user_id", "org", "role"), roles(d.Members, d.Admins)},
		{graph.Table("rebac_groups", "id", "org"), count(len(d.GroupOrg), org(d.GroupOrg))},
		{graph.Table("rebac_group_members", "user_id", "grp", "role"), roles(d.GroupMembers, d.GroupManagers)},
		{graph.Table("rebac_hierarchy", "child", "parent"), count(len(d.Hierarchy), func(i int) []any {
			return []any{int64(d.Hierarchy[i].Child), int64(d.Hierarchy[i].Parent)}
		})},
		{graph.Table("rebac_resources", "id", "org"), count(len(d.ResourceOrg), org(d.ResourceOrg))},
		{graph.Table("rebac_acl", "resource", "relation", "subject"), func(yield func([]any) bool) {
			row := make([]any, 3)
			for e := range d.Entries() {
				row[0], row[1], row[2] = int64(e.Resource), int64(e.Relation), int64(e.Subject)
				if !yield(row) {
					return
				}
			}
		}},
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
