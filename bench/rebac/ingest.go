package rebac

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store/driver"
)

// The tables, by relation, in the order in which they are filled.
var (
	users        = ids("rebac_users", "id", "name")
	orgs         = ids("rebac_orgs", "id", "name")
	members      = ids("rebac_members", "user_id", "org", "role")
	groups       = ids("rebac_groups", "id", "org")
	groupMembers = ids("rebac_group_members", "user_id", "grp", "role")
	hierarchy    = ids("rebac_hierarchy", "child", "parent")
	resources    = ids("rebac_resources", "id", "org")
	acl          = ids("rebac_acl", "resource", "relation", "subject")
)

// ids describes a table whose columns are numbers, but for one called name.
func ids(name string, columns ...string) *driver.Table {
	t := &driver.Table{Name: name}
	for _, c := range columns {
		kind := driver.Int
		if c == "name" {
			kind = driver.Text
		}
		t.Columns = append(t.Columns, driver.Column{Name: c, Type: kind})
	}
	return t
}

// IngestResult is what Ingest did.
type IngestResult struct {
	Objects int                 // rows of all relations
	Entries int                 // of these, of access lists
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
	defer func() {
		if err != nil {
			err = fmt.Errorf("ingest: %w", err)
		}
	}()
	if batch <= 0 {
		batch = DefaultBatch
	}
	start := time.Now()
	if err := s.CreateTables(ctx); err != nil {
		return r, err
	}
	l := &loader{store: s, batch: batch, took: latency.NewRecorder(), boxed: box(max(d.Size.Users, d.Size.Resources, d.Size.Groups))}
	if err := l.small(ctx, d); err != nil {
		return r, err
	}
	l.took = latency.NewRecorder()
	l.begin(acl)
	for e := range d.Entries() {
		if err := l.add(ctx, l.boxed[e.Resource], l.boxed[e.Relation], l.boxed[e.Subject]); err != nil {
			return r, err
		}
	}
	if err := l.flush(ctx); err != nil {
		return r, err
	}
	r.Batches = l.took.Distribution("batch")
	indexes := time.Now()
	if err := s.CreateIndexes(ctx); err != nil {
		return r, err
	}
	r.Took, r.Indexes = time.Since(start), time.Since(indexes)
	r.Objects, r.Entries = d.Size.Objects(), d.Size.Entries()
	return r, s.expect(ctx, "count_acl", r.Entries)
}

// CheckClosure compares the size of the closure with the oracle's: ErrMismatch.
func (s *Store) CheckClosure(ctx context.Context, o *Oracle) error {
	return s.expect(ctx, "count_closure", o.Closure())
}

// expect compares a count of rows.
func (s *Store) expect(ctx context.Context, name string, want int) error {
	snap, err := s.db.Engine().Snapshot(ctx)
	if err != nil {
		return err
	}
	var n int64
	err = driver.QueryRow(ctx, snap, s.schema.Statements[name], nil, &n)
	if err == nil && n != int64(want) {
		err = fmt.Errorf("%w: %s is %d, want %d", bench.ErrMismatch, name, n, want)
	}
	return errors.Join(err, snap.Close())
}

// loader collects rows of one table and writes a transaction when it has enough.
type loader struct {
	store *Store
	batch int
	boxed []any // numbers as interfaces, so that a row allocates nothing

	table *driver.Table
	rows  []any
	took  *latency.Recorder // of transactions
}

// box returns the numbers from 0 to n.
func box(n int) []any {
	list := make([]any, n+1)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

func (l *loader) begin(t *driver.Table) {
	l.table, l.rows = t, l.rows[:0]
}

func (l *loader) add(ctx context.Context, values ...any) error {
	l.rows = append(l.rows, values...)
	if len(l.rows) < l.batch*len(l.table.Columns) {
		return nil
	}
	return l.flush(ctx)
}

func (l *loader) flush(ctx context.Context) error {
	if len(l.rows) == 0 {
		return nil
	}
	start := time.Now()
	err := l.store.write(ctx, func(ctx context.Context, tx driver.Tx) error { return tx.Insert(ctx, l.table, l.rows) })
	l.took.Record(time.Since(start))
	l.rows = l.rows[:0]
	return err
}

// small writes everything but the access lists.
func (l *loader) small(ctx context.Context, d *Data) error {
	var err error
	each := func(t *driver.Table, n int, row func(i int) []any) {
		l.begin(t)
		for i := 0; i < n && err == nil; i++ {
			err = l.add(ctx, row(i)...)
		}
		if err == nil {
			err = l.flush(ctx)
		}
	}
	role := func(m Role) []any { return []any{l.boxed[m.User], l.boxed[m.In], l.boxed[m.Role]} }
	each(users, d.Size.Users, func(i int) []any { return []any{l.boxed[i+1], fmt.Sprintf("user-%d", i+1)} })
	each(orgs, d.Size.Orgs, func(i int) []any { return []any{l.boxed[i+1], fmt.Sprintf("org-%d", i+1)} })
	each(members, len(d.Members), func(i int) []any { return role(d.Members[i]) })
	each(groups, len(d.GroupOrg), func(i int) []any { return []any{l.boxed[i+1], l.boxed[d.GroupOrg[i]]} })
	each(groupMembers, len(d.GroupMembers), func(i int) []any { return role(d.GroupMembers[i]) })
	each(hierarchy, len(d.Hierarchy), func(i int) []any {
		return []any{l.boxed[d.Hierarchy[i].Child], l.boxed[d.Hierarchy[i].Parent]}
	})
	each(resources, len(d.ResourceOrg), func(i int) []any { return []any{l.boxed[i+1], l.boxed[d.ResourceOrg[i]]} })
	return err
}
