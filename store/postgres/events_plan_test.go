package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// planned runs queries and requires that none is planned as one that reads a table of events
// whole, or that pays for starting helpers.
type planned struct {
	driver.Querier
	t *testing.T
}

func (p planned) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := p.Querier.Query(ctx, "EXPLAIN "+text, args...)
	require.NoError(p.t, err)
	var plan strings.Builder
	for rows.Next() {
		var line []byte
		require.NoError(p.t, rows.Scan(&line))
		plan.Write(line)
		plan.WriteByte('\n')
	}
	require.NoError(p.t, rows.Close())
	for _, dear := range []string{"Seq Scan on events", "Gather", "Seq Scan on event_postings"} {
		require.NotContains(p.t, plan.String(), dear, "of %s", text)
	}
	return p.Querier.Query(ctx, text, args...)
}

// TestEventPlans: in a log of many events, before statistics are gathered and
// after, queries for a few of them seek.
func TestEventPlans(t *testing.T) {
	ctx := t.Context()
	url := pgtest.NewURL(t)
	db, err := store.Open(ctx, url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Events(ctx, nil)
	require.NoError(t, err)
	log, err := eventlog.New(driver.Postgres)
	require.NoError(t, err)
	pgtest.Exec(t, url, `INSERT INTO events SELECT n, 'A', n, '', repeat('x', 50), repeat('y', 100)::bytea, '' FROM generate_series(1, 400000) AS n`)
	pgtest.Exec(t, url, `UPDATE event_index SET position = 399999`)
	pgtest.Exec(t, url, `INSERT INTO event_postings SELECT 'x=' || n, n, '' FROM generate_series(1, 100000) AS n`)

	tag := event.Tagged(event.NewTag("x", "none"))
	for _, counted := range []bool{false, true} {
		if counted {
			pgtest.Exec(t, url, "ANALYZE")
		}
		r, err := db.Engine().Snapshot(ctx)
		require.NoError(t, err)
		p := planned{r, t}
		for _, page := range []eventlog.Page{
			{Items: eventlog.Compile(tag)},
			{Items: eventlog.Compile(tag), After: 399_000},
			{Items: eventlog.Compile(tag), Backwards: true},
			{Items: eventlog.Compile(tag), Last: &eventlog.Last{}},
			{Items: eventlog.Compile(event.Typed("B", event.NewTag("x", "none")))},
			{Items: eventlog.Compile(event.Of("B"))},
			{Items: eventlog.Compile(event.All()), After: 400_000},
			{Items: eventlog.Compile(event.All()), After: 400_000, Before: 500_000, Backwards: true},
		} {
			for _, page.Limit = range []int{1, 256, 4096} {
				page.Bytes = 1 << 20
				_, _, err := log.Read(ctx, p, page)
				require.NoError(t, err)
			}
		}
		guard := &eventlog.Guard{Items: eventlog.Compile(tag)}
		require.NoError(t, log.Judge(ctx, p, []*eventlog.Guard{guard}, 399_999, eventlog.Bound{}))
		require.NoError(t, log.NewTail(eventlog.TailOptions{Shared: true, Every: 100}).Sync(ctx, p))
		require.NoError(t, r.Close())
	}
}
