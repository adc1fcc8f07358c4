package eventlog_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
	_ "github.com/varvedb/varve/store/sqlite"
)

var update = flag.Bool("update", false, "write the golden plans anew")

// open makes an empty log in a SQLite database.
func open(t testing.TB) (driver.Engine, *eventlog.Log) {
	t.Helper()
	d, ok := driver.Lookup("sqlite")
	require.True(t, ok)
	e, err := d.Open(context.Background(), &url.URL{Scheme: "sqlite", Path: t.TempDir() + "/log.db"}, driver.Options{Durability: driver.Unsafe})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	l, err := eventlog.New(driver.SQLite)
	require.NoError(t, err)
	commit(t, e, func(tx driver.Tx) { require.NoError(t, l.Create(context.Background(), tx)) })
	return e, l
}

func commit(t testing.TB, e driver.Engine, f func(tx driver.Tx)) {
	t.Helper()
	tx, err := e.Begin(context.Background())
	require.NoError(t, err)
	defer tx.Rollback() // where f fails
	f(tx)
	require.NoError(t, tx.Commit(context.Background()))
}

// newTail returns the tail of a process that is not alone.
func newTail(l *eventlog.Log, every int) *eventlog.Tail {
	return l.NewTail(eventlog.TailOptions{Shared: true, Every: every})
}

// write appends events through a tail, if any, and commits.
func write(t testing.TB, e driver.Engine, tail *eventlog.Tail, events ...event.Event) {
	t.Helper()
	commit(t, e, func(tx driver.Tx) {
		require.NoError(t, tail.Sync(context.Background(), tx))
		if tail.Add(eventlog.Prepare(events)); tail.Pending() {
			require.NoError(t, tail.Write(context.Background(), tx, 1))
		}
	})
	tail.Commit()
}

func randomEvent(rnd *rand.Rand) event.Event {
	e := event.Event{Type: []string{"A", "B", "C"}[rnd.IntN(3)]}
	for k := range rnd.IntN(4) {
		e.Tags = append(e.Tags, event.NewTag(string(rune('x'+k)), fmt.Sprint(rnd.IntN(5))))
	}
	return e
}

// TestTail compares the answers of a writer's memory with the tables, for two
// writers that alternate, and for one that has the database alone. Writers are
// replaced by others that write postings sooner or later, some transactions
// have no event, and postings are rebuilt.
func TestTail(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) { testTail(t, shared) })
	}
}

func testTail(t *testing.T, shared bool) {
	e, l := open(t)
	newTail := func(every int) *eventlog.Tail {
		return l.NewTail(eventlog.TailOptions{Shared: shared, Every: every})
	}
	tails := []*eventlog.Tail{newTail(20), newTail(9)}
	if !shared {
		tails = tails[:1]
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	ctx := context.Background()
	drawTag := func(rt *rapid.T) event.Tag {
		return event.NewTag(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "key"), fmt.Sprint(rapid.IntRange(0, 5).Draw(rt, "value")))
	}
	check := func(tx driver.Tx) {
		_, err := l.Check(ctx, tx, func(problem string) bool { t.Error(problem); return true }, func(uint64) {})
		require.NoError(t, err)
	}
	defer func() { commit(t, e, check) }()
	rapid.Check(t, func(rt *rapid.T) {
		writer := &tails[rapid.IntRange(0, len(tails)-1).Draw(rt, "writer")]
		switch what := rapid.IntRange(0, 9).Draw(rt, "what"); {
		case what <= 1 && shared:
			commit(t, e, func(tx driver.Tx) {
				check(tx)
				require.NoError(t, l.Rebuild(ctx, tx))
			})
		case what <= 2:
			*writer = newTail(rapid.IntRange(1, 20).Draw(rt, "every"))
			write(t, e, *writer)
		case what == 3:
			write(t, e, *writer)
		}
		tail := *writer
		for range rapid.SampledFrom([]int{1, 20}).Draw(rt, "events") {
			write(t, e, tail, randomEvent(rnd))
		}
		q := event.All()
		if rapid.IntRange(0, 2).Draw(rt, "all") > 0 {
			q = event.Of(rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "D"}), 1, 2).Draw(rt, "types")...)
			q.Items[0].Tags = rapid.SliceOfNDistinct(rapid.Custom(drawTag), 0, 2, rapid.ID).Draw(rt, "tags")
			if rapid.Bool().Draw(rt, "any type") && len(q.Items[0].Tags) > 0 {
				q.Items[0].Types = nil
			}
		}
		after := tail.Head() - min(tail.Head(), uint64(rapid.IntRange(0, 40).Draw(rt, "back")))
		items := eventlog.Compile(q)
		commit(t, e, func(tx driver.Tx) {
			require.NoError(t, tail.Sync(ctx, tx))
			guard := eventlog.Guard{Items: items, After: after}
			if after < tail.Indexed() {
				require.NoError(t, l.Judge(ctx, tx, []*eventlog.Guard{&guard}, tail.Indexed(), eventlog.Bound{}))
			}
			got := guard.Found
			if got > tail.Indexed() {
				rt.Fatalf("event %d is found by postings, which end at %d", got, tail.Indexed())
			}
			if got == 0 {
				got = tail.First(&items[0], after)
			}
			several := len(q.Items) > 0 && len(q.Items[0].Types) > 1 // any of them will do
			if want := firstMatch(t, tx, q, after); (want > 0) != (got > 0) || !several && want != got {
				rt.Fatalf("%+v after %d: want %d, got %d", q, after, want, got)
			}
		})
	})
}

// firstMatch looks through the events themselves.
func firstMatch(t testing.TB, q driver.Querier, query event.Query, after uint64) uint64 {
	rows, err := q.Query(context.Background(), "SELECT position, type, tags FROM events WHERE position > ? ORDER BY position", int64(after))
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var at int64
		var typ, tags string
		require.NoError(t, rows.Scan(&at, &typ, &tags))
		e := event.Event{Type: typ}
		for text := range strings.SplitSeq(tags, "\x1f") {
			if key, value, ok := strings.Cut(text, "="); ok {
				e.Tags = append(e.Tags, event.NewTag(key, value))
			}
		}
		if query.Matches(&e) {
			return uint64(at)
		}
	}
	require.NoError(t, rows.Err())
	return 0
}

// TestAbort: after a transaction that failed nothing of it is left.
func TestAbort(t *testing.T) {
	e, l := open(t)
	tail := l.NewTail(eventlog.TailOptions{Every: 10})
	write(t, e, tail, event.Event{Type: "A", ID: event.ID{1}}, event.Event{Type: "B"})
	tail.Add(eventlog.Prepare([]event.Event{{Type: "C", ID: event.ID{2}}}))
	require.True(t, tail.Pending())
	_, _, ok := tail.Find(event.ID{2})
	require.True(t, ok)
	tail.Abort()
	write(t, e, tail, event.Event{Type: "D"})
	require.False(t, tail.Pending())
	require.Equal(t, uint64(3), tail.Head())
	_, _, ok = tail.Find(event.ID{2})
	require.False(t, ok)
	at, _, ok := tail.Find(event.ID{1})
	require.True(t, ok)
	require.Equal(t, uint64(1), at)
}

// TestDamage: an event that is lost from under its postings is an error, also where
// the next one ends the page, and where no event comes after it.
func TestDamage(t *testing.T) {
	for _, lost := range []int64{1, 2} {
		e, l := open(t)
		write(t, e, newTail(l, 1), event.Event{Type: "A"}, event.Event{Type: "A", Data: []byte("data")})
		commit(t, e, func(tx driver.Tx) {
			_, err := tx.Exec(context.Background(), "DELETE FROM events WHERE position = ?", lost)
			require.NoError(t, err)
			for _, bytes := range []int{1 << 20, 1} {
				_, _, err = l.Read(context.Background(), tx, eventlog.Page{Items: eventlog.Compile(event.Of("A")), Limit: 10, Bytes: bytes})
				require.ErrorIs(t, err, driver.ErrCorrupt)
				_, err = l.ReadAt(context.Background(), tx, []uint64{1, 2}, bytes, nil)
				require.ErrorIs(t, err, driver.ErrCorrupt)
			}
		})
	}
}

// explainer runs queries and keeps their plans.
type explainer struct {
	driver.Querier
	t     *testing.T
	plans []string
}

func (x *explainer) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := x.Querier.Query(ctx, "EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(x.t, err)
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		require.NoError(x.t, rows.Scan(&id, &parent, &unused, &detail))
		x.plans = append(x.plans, "    "+detail)
	}
	require.NoError(x.t, rows.Close())
	return x.Querier.Query(ctx, text, args...)
}

// TestPlans compares the plans of the hot queries with the golden ones: each seeks.
func TestPlans(t *testing.T) {
	e, l := open(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	tail := newTail(l, 90)
	for range 30 {
		events := make([]event.Event, 90)
		for i := range events {
			events[i] = randomEvent(rnd)
		}
		write(t, e, tail, events...)
	}
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	x := &explainer{Querier: r, t: t}
	read := func(name string, q event.Query, p eventlog.Page) {
		x.plans = append(x.plans, name)
		p.Items, p.Limit, p.Bytes = eventlog.Compile(q), 20, 1<<20
		_, _, err := l.Read(t.Context(), x, p)
		require.NoError(t, err)
	}
	tag := event.Tagged(event.NewTag("x", "1"))
	read("everything", event.All(), eventlog.Page{After: 5})
	read("everything, backwards", event.All(), eventlog.Page{Backwards: true, Before: 50})
	read("a tag", tag, eventlog.Page{})
	read("a tag, from the middle", tag, eventlog.Page{After: 1000})
	read("a tag, backwards", tag, eventlog.Page{Backwards: true})
	read("a tag of few, to the end", event.Tagged(event.NewTag("x", "1"), event.NewTag("none", "")), eventlog.Page{})
	read("types", event.Of("A", "B"), eventlog.Page{After: 2690})
	read("a tag of one type", event.Typed("A", event.NewTag("x", "1")), eventlog.Page{})
	read("the last of a tag", tag, eventlog.Page{Last: &eventlog.Last{}})
	x.plans = append(x.plans, "since a time")
	_, err = l.FirstSince(t.Context(), x, 1)
	require.NoError(t, err)
	x.plans = append(x.plans, "conditions")
	items := append(eventlog.Compile(event.Of("A", "D").Or(tag)), eventlog.Compile(event.All())...)
	require.NoError(t, l.Judge(t.Context(), x, []*eventlog.Guard{{Items: items[:1]}, {Items: items[1:2], After: 100}, {Items: items[2:], After: 3}}, 1, eventlog.Bound{}))
	x.plans = append(x.plans, "what a writer reads first")
	require.NoError(t, newTail(l, 100).Sync(t.Context(), x))
	x.plans = append(x.plans, "IDs")
	_, err = l.Positions(t.Context(), x, make([]event.ID, 17))
	require.NoError(t, err)

	const golden = "testdata/plans.txt"
	got := strings.Join(x.plans, "\n") + "\n"
	require.NotContains(t, got, "TEMP B-TREE")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run with -update if the change is wanted")
}
