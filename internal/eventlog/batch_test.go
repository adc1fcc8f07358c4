package eventlog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// rowCounter counts the rows that a transaction adds to what finds events.
type rowCounter struct {
	driver.Tx
	rows int
}

func (c *rowCounter) Insert(ctx context.Context, table *driver.Table, rows []any) error {
	if table.Name != "events" {
		c.rows += len(rows) / len(table.Columns)
	}
	return c.Tx.Insert(ctx, table, rows)
}

// identified returns an event with an ID and tags that hardly any other has, and
// some that many have.
func identified(rnd *rand.Rand, n int) event.Event {
	e := randomEvent(rnd)
	e.Tags = append(e.Tags, event.NewTag("n", fmt.Sprint(n)), event.NewTag("half", fmt.Sprint(n%2)))
	for i := range e.ID {
		e.ID[i] = byte(rnd.Uint32())
	}
	return e
}

// TestRowsOfCommits: no commit writes more than a small part of the rows of a
// batch, and all are written before the next batch begins.
func TestRowsOfCommits(t *testing.T) {
	const every, batches = 2048, 3
	for _, size := range []int{1, 16, 100} {
		t.Run(fmt.Sprintf("events=%d", size), func(t *testing.T) {
			e, l := open(t)
			tail := l.NewTail(eventlog.TailOptions{Every: every})
			rnd := rand.New(rand.NewPCG(6, 6))
			most, all, open := 0, 0, false
			for n := 0; n < (batches+1)*every; n += size {
				events := make([]event.Event, size)
				for i := range events {
					events[i] = identified(rnd, n+i)
				}
				var c *rowCounter
				commit(t, e, func(tx driver.Tx) {
					c = &rowCounter{Tx: tx}
					require.NoError(t, tail.Sync(t.Context(), c))
					tail.Add(eventlog.Prepare(events))
					require.NoError(t, tail.Write(t.Context(), c, 1))
				})
				tail.Commit()
				tail.Made()
				end, now := tail.Batch()
				require.True(t, !now || open || end == tail.Head(), "a batch begins with all events")
				open = now
				most, all = max(most, c.rows), all+c.rows
				require.LessOrEqual(t, tail.Entries(), 2*(every+size), "two batches are in memory")
			}
			require.GreaterOrEqual(t, tail.Indexed(), uint64(batches*every))
			// A batch is written with three quarters as many events as it has.
			perBatch := all / batches
			t.Logf("%d rows a batch, at most %d in a commit", perBatch, most)
			require.LessOrEqual(t, most, max(every/16, 2*perBatch*size/every))
		})
	}
}

// TestHalfBatch: another process goes on with a batch, wherever the one before
// it has stopped, and between any two commits every event is found.
func TestHalfBatch(t *testing.T) {
	e, l := open(t)
	const every = 70
	rnd := rand.New(rand.NewPCG(7, 7))
	reader := newTail(l, 1)
	writers := []*eventlog.Tail{newTail(l, every), newTail(l, 2*every)}
	var events []event.Event
	half, taken := 0, 0
	for n := range 360 {
		w := 0
		if n%5 == 0 {
			w = 1 // a batch is the work of both
		}
		if n%7 == 0 { // one is killed
			writers[w] = newTail(l, every)
			taken++
		}
		ev := identified(rnd, n)
		write(t, e, writers[w], ev)
		writers[w].Made()
		events = append(events, ev)
		if _, ok := writers[w].Batch(); !ok {
			continue
		}
		half++
		view, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		i := rnd.IntN(len(events))
		for name, c := range map[string]struct {
			tail *eventlog.Tail
			q    event.Query
		}{
			"a tag":                  {reader, event.Tagged(ev.Tags[len(ev.Tags)-2])},
			"a tag of before":        {reader, event.Tagged(events[i].Tags[len(events[i].Tags)-2])},
			"half of all":            {reader, event.Tagged(ev.Tags[len(ev.Tags)-1])},
			"a type":                 {writers[w], event.Of(ev.Type)},
			"a type and a tag":       {writers[w], event.Typed(events[i].Type, event.NewTag("half", "1"))},
			"without memory":         {nil, event.Of("A", "B")},
			"a tag, with no memory":  {nil, event.Tagged(event.NewTag("half", "0"))},
			"several with no memory": {nil, event.Of("C").Or(event.Tagged(event.NewTag("half", "0")))},
		} {
			for _, p := range []eventlog.Page{
				{}, {Backwards: true}, {After: uint64(i)}, {Before: uint64(i) + 2},
				{Last: &eventlog.Last{}}, {Last: &eventlog.Last{}, After: uint64(i)},
			} {
				p.Items, p.Limit, p.Bytes, p.Tail = eventlog.Compile(c.q), 1000, 1<<20, c.tail
				got, _, err := l.Read(t.Context(), view, p)
				require.NoError(t, err)
				require.Equal(t, wanted(events, c.q, &p), positionsOf(got), "%s, %+v", name, p)
			}
		}
		at, err := l.Positions(t.Context(), view, []event.ID{events[i].ID})
		require.NoError(t, err)
		if uint64(i) < writers[w].Indexed() {
			require.Equal(t, uint64(i)+1, at[events[i].ID])
		} else {
			at, _, ok := writers[w].Find(events[i].ID)
			require.True(t, ok)
			require.Equal(t, uint64(i)+1, at)
		}
		if n%4 == 0 {
			requireSound(t, l, view)
		}
		require.NoError(t, view.Close())
	}
	require.Greater(t, half, 120)
	require.Greater(t, taken, 40)
	require.Greater(t, writers[0].Indexed(), uint64(200))
}

// wanted returns the positions that a page must have.
func wanted(events []event.Event, q event.Query, p *eventlog.Page) (list []uint64) {
	for i := range events {
		at := uint64(i) + 1
		if at <= p.After || p.Before > 0 && at >= p.Before || !q.Matches(&events[i]) {
			continue
		}
		list = append(list, at)
	}
	if p.Last != nil {
		var last []uint64
		for i := range q.Items {
			one := event.Query{Items: q.Items[i : i+1]}
			of := slices.DeleteFunc(slices.Clone(list), func(at uint64) bool { return !one.Matches(&events[at-1]) })
			last = append(last, of[max(len(of)-1, 0):]...)
		}
		slices.Sort(last)
		list = slices.Compact(last)
	}
	if p.Backwards {
		slices.Reverse(list)
	}
	return list
}

func positionsOf(list []event.Sequenced) (positions []uint64) {
	for i := range list {
		positions = append(positions, list[i].Position)
	}
	return positions
}

// problems returns what a check finds.
func problems(t testing.TB, l *eventlog.Log, q driver.Querier) (list []string) {
	t.Helper()
	_, err := l.Check(t.Context(), q, func(problem string) bool { list = append(list, problem); return true }, func(uint64) {})
	require.NoError(t, err)
	return list
}

func requireSound(t testing.TB, l *eventlog.Log, q driver.Querier) {
	t.Helper()
	require.Empty(t, problems(t, l, q))
}

// TestCheckHalfBatch: a batch that is half written is sound, and one that has
// other rows than it should is damage, which Rebuild mends.
func TestCheckHalfBatch(t *testing.T) {
	for name, damage := range map[string]string{
		"a row is missing":           "DELETE FROM event_postings WHERE position > 100 AND term = (SELECT min(term) FROM event_postings WHERE position > 100)",
		"a row has another list":     "UPDATE event_postings SET list = x'0000' WHERE position > 100",
		"a row is of no batch":       "INSERT INTO event_postings SELECT '~', max(position), x'0000' FROM events",
		"an ID is of no batch":       "INSERT INTO event_ids SELECT x'00112233445566778899aabbccddeeff', max(position) FROM events",
		"the end of the batch":       "DELETE FROM event_index WHERE position > 100",
		"the end is behind the last": "UPDATE event_index SET position = 1000 WHERE position > 100",
	} {
		t.Run(name, func(t *testing.T) {
			e, l := open(t)
			rnd := rand.New(rand.NewPCG(8, 8))
			tail := newTail(l, 100)
			for n := range 220 {
				write(t, e, tail, identified(rnd, n))
			}
			_, half := tail.Batch()
			require.True(t, half)
			require.EqualValues(t, 100, tail.Indexed())
			commit(t, e, func(tx driver.Tx) {
				requireSound(t, l, tx)
				n, err := tx.Exec(t.Context(), damage)
				require.NoError(t, err)
				require.NotZero(t, n)
				require.NotEmpty(t, problems(t, l, tx))
				require.NoError(t, l.Rebuild(t.Context(), tx))
				requireSound(t, l, tx)
			})
			write(t, e, newTail(l, 100), identified(rnd, 220))
			commit(t, e, func(tx driver.Tx) { requireSound(t, l, tx) })
		})
	}
}

// TestFailedStep: a commit that fails in the middle of a batch, or where it begins
// one, leaves nothing. The next one, perhaps of another process with other events,
// goes on.
func TestFailedStep(t *testing.T) {
	e, l := open(t)
	rnd := rand.New(rand.NewPCG(9, 9))
	tails := []*eventlog.Tail{newTail(l, 20), newTail(l, 20)}
	failed := 0
	for n := 0; n < 400; {
		tail := tails[rnd.IntN(2)]
		if rnd.IntN(3) > 0 {
			write(t, e, tail, identified(rnd, n))
			n++
			continue
		}
		fails(t, e, tail, identified(rnd, -n))
		if _, half := tail.Batch(); half {
			failed++
		}
	}
	require.Greater(t, failed, 20)
	require.GreaterOrEqual(t, max(tails[0].Indexed(), tails[1].Indexed()), uint64(360))
	commit(t, e, func(tx driver.Tx) { requireSound(t, l, tx) })
}

// fails appends an event in a transaction that is rolled back.
func fails(t testing.TB, e driver.Engine, tail *eventlog.Tail, ev event.Event) {
	tx, err := e.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback() // also where a step fails
	require.NoError(t, tail.Sync(t.Context(), tx))
	tail.Add(eventlog.Prepare([]event.Event{ev}))
	require.NoError(t, tail.Write(t.Context(), tx, 1))
	tail.Abort()
}
