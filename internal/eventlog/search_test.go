package eventlog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// counter counts statements and the rows that they return.
type counter struct {
	driver.Querier
	statements int
	postings   int // rows of them
	events     int // rows of the others
}

func (c *counter) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	c.statements++
	rows, err := c.Querier.Query(ctx, text, args...)
	n := &c.events
	if strings.Contains(text, "FROM event_postings") {
		n = &c.postings
	}
	return countedRows{rows, n}, err
}

type countedRows struct {
	driver.Rows
	n *int
}

func (r countedRows) Next() bool {
	ok := r.Rows.Next()
	if ok {
		*r.n++
	}
	return ok
}

// enrol fills a log with events of a rare course, of grades that are everywhere and
// never together, and of products.
func enrol(t testing.TB, e driver.Engine, l *eventlog.Log) {
	tail := newTail(l, 128)
	// Long before the others, and one more batch.
	write(t, e, tail, append([]event.Event{{Type: "C", Tags: []event.Tag{event.NewTag("course", "1")}}}, make([]event.Event, 12_799)...)...)
	for i := 0; i < 12_800; i += 128 {
		batch := make([]event.Event, 128)
		for j := range batch {
			n := i + j
			batch[j] = event.Event{Type: []string{"A", "B"}[n%2], Tags: []event.Tag{
				event.NewTag("grade", string(rune('A'+n%5))), event.NewTag("product", fmt.Sprint(n%1000)),
			}}
			if n%500 < 2 {
				batch[j].Tags = append(batch[j].Tags, event.NewTag("course", "1"))
			}
			if n >= 6400 && n < 6410 {
				batch[j].Tags = append(batch[j].Tags, event.NewTag("grade", "Z"))
			}
		}
		write(t, e, tail, batch...)
	}
}

// TestWork: what reads and conditions cost, in statements and rows.
func TestWork(t *testing.T) {
	e, l := open(t)
	enrol(t, e, l)
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	course, a, b := event.NewTag("course", "1"), event.NewTag("grade", "A"), event.NewTag("grade", "B")
	var products event.Query
	for i := range 1000 {
		products.Items = append(products.Items, event.Item{Tags: []event.Tag{event.NewTag("product", fmt.Sprint(i))}})
	}
	for _, c := range []struct {
		name string
		q    event.Query
		most work
	}{
		// 53 events in 27 rows of postings, and the row that tells where the log ends.
		{"a rare tag", event.Tagged(course), work{53, 4, 30, 54}},
		{"and what it finds already", event.Query{Items: append(event.Tagged(course, a).Items, event.Tagged(course).Items...)}, work{53, 4, 30, 54}},
		// The other's 100 rows are not read.
		{"and a frequent one", event.Tagged(course, a), work{26, 4, 40, 54}},
		{"and a frequent one, the other way round", event.Tagged(a, course), work{26, 4, 40, 54}},
		// Two lists of 2,560 events each; no event is read.
		{"frequent ones that never meet", event.Tagged(a, b), work{0, 5, 210, 1}},
		{"one of few, in the middle", event.Tagged(a, event.NewTag("grade", "Z")), work{2, 4, 50, 3}},
		{"a thousand tags", products, work{12_800, 350, 15_000, 12_801}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, backwards := range []bool{false, true} {
				x := &counter{Querier: r}
				p := eventlog.Page{Items: eventlog.Merge(eventlog.Compile(c.q)), Limit: 1 << 20, Bytes: 1 << 30, Backwards: backwards}
				list, end, err := l.Read(t.Context(), x, p)
				require.NoError(t, err)
				require.True(t, end)
				checkWork(t, c.most, work{len(list), x.statements, x.postings, x.events})
			}
		})
	}
	for _, c := range []struct {
		name string
		q    event.Query
		most work
	}{
		{"a condition on frequent ones that never meet", event.Tagged(a, b), work{0, 8, 210, 0}},
		{"a condition on rare ones that never meet", event.Tagged(course, event.NewTag("grade", "Z")), work{0, 5, 20, 10}},
		{"a condition that fails at once", event.Tagged(a, event.NewTag("product", "500")), work{13_301, 3, 10, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &counter{Querier: r}
			guard := eventlog.Guard{Items: eventlog.Compile(c.q)}
			require.NoError(t, l.Judge(t.Context(), x, []*eventlog.Guard{&guard}, 1<<20, eventlog.Bound{}))
			checkWork(t, c.most, work{int(guard.Found), x.statements, x.postings, x.events})
		})
	}
}

// work counts the found events and the cost of finding them.
type work struct{ found, statements, postings, events int }

func checkWork(t *testing.T, most, got work) {
	t.Helper()
	t.Log(got)
	require.Equal(t, most.found, got.found)
	require.LessOrEqual(t, got.statements, most.statements)
	require.LessOrEqual(t, got.postings, most.postings)
	require.LessOrEqual(t, got.events, most.events)
}
