package enrolment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// Workload is a measurement on a store that holds Data.
type Workload struct {
	Group      string // of operations, as in the names of benchmarks: "Append" of BenchmarkEventAppend
	Key, Value string // distinguish it from others of its group
	Memory     bool   // memory is measured instead of operations

	// Operations fail with bench.ErrMismatch when the store does not hold or answer what it should.
	Operations func(ctx context.Context, events *store.Events) (*bench.Operations, error)
}

// Workloads returns all, in a fixed order.
func Workloads(d Data) (list []Workload) {
	writes := func(group, key string, n int, w Writes) {
		list = append(list, Workload{Group: group, Key: key, Value: strconv.Itoa(n), Operations: func(ctx context.Context, evs *store.Events) (*bench.Operations, error) {
			return w.Operations(ctx, evs)
		}})
	}
	passes := func(group, key, value string, do pass, of ...event.Query) {
		list = append(list, Workload{Group: group, Key: key, Value: value, Memory: group == "ReadMemory", Operations: func(_ context.Context, evs *store.Events) (*bench.Operations, error) {
			return do.operations(evs, d, of), nil
		}})
	}
	for _, n := range []int{1, 10, 100, 1000} {
		writes("Append", "batch", n, Writes{Clients: 1, Do: Append, batch: n})
	}
	for _, n := range []int{1, 5, 10, 20} {
		writes("AppendConcurrent", "clients", n, Writes{Clients: n, Do: Append})
	}
	for _, n := range []int{1, 16, 128} {
		writes("AppendConditional", "clients", n, Writes{Clients: n, Do: AppendIfNew})
	}
	for _, n := range []int{1, 16} {
		writes("AppendRandom", "clients", n, Writes{Clients: n, Do: AppendIfNew, random: true})
		writes("Decide", "clients", n, Writes{Clients: n, Do: Decide})
	}
	for _, q := range queries {
		passes("Read", "query", q.name, readAll, q.of)
	}
	passes("ReadMemory", "query", "everything", readAll, event.All())
	passes("Stream", "query", "student", stream, event.Tagged(student))
	for _, n := range []int{1, 5} {
		passes("Project", "projectors", strconv.Itoa(n), project, projected[:n]...)
	}
	return list
}

// Run measures the operations in a loop. For writes it also reports the log
// syncs a second, if the engine counts them.
func (w Workload) Run(ctx context.Context, cp *bench.Copy, loop pace.Config) (res bench.Result, err error) {
	ops, err := w.Operations(ctx, cp.Events)
	if err != nil {
		return res, err
	}
	if w.Memory {
		return memory(ctx, cp, ops, loop)
	}
	before, err := cp.DB.Engine().Stats(ctx)
	if err == nil {
		res, err = ops.Run(ctx, loop)
	}
	after, noStats := cp.DB.Engine().Stats(ctx)
	if err = errors.Join(err, noStats); err == nil && ops.Check != nil && before.Syncs != nil && after.Syncs != nil && res.Elapsed > 0 {
		res.More = append(res.More, bench.Metric{Value: float64(*after.Syncs-*before.Syncs) / res.Elapsed.Seconds(), Unit: "sync/s"})
	}
	return res, err
}

// The tags of the second generated course and student.
var course, student = courseTag(1), studentTag(1)

// queries are the queries of go-crablet's report, and one that combines a
// frequent tag with another.
var queries = []struct {
	name string
	of   event.Query
}{
	{"course-by-id", event.Typed("CourseDefined", course)},
	{"courses-by-category", event.Typed("CourseDefined", event.NewTag("category", "Computer Science"))},
	{"student", event.Tagged(student)},
	{"or", event.Typed("CourseDefined", course).Or(event.Typed("StudentRegistered", student))},
	{"enrolments-by-grade", event.Typed(enrolled, event.NewTag("grade", "A"))},
	{"course", event.Tagged(course)},
	{"course-and-grade", event.Tagged(course, event.NewTag("grade", "A"))},
	{"everything", event.All()},
}

// projected are the queries of a projection, each by one tag.
var projected = []event.Query{
	event.Typed("CourseDefined", course), event.Typed("StudentRegistered", student),
	event.Typed(enrolled, student), event.Typed(enrolled, course), event.Typed(enrolled, student, course),
}

// pass reads what queries select and returns the number of events; want is the
// expected number.
type pass func(ctx context.Context, evs *store.Events, of []event.Query, want int) (int, error)

// operations returns passes as operations, each of which must find as many
// events as the data have.
func (do pass) operations(evs *store.Events, d Data, of []event.Query) *bench.Operations {
	want := 0
	for _, q := range of {
		want += d.Count(q)
	}
	return &bench.Operations{Events: want, Do: func(ctx context.Context, _ int) error {
		n, err := do(ctx, evs, of, want)
		if err == nil && n != want {
			err = fmt.Errorf("%w: %d events, want %d", bench.ErrMismatch, n, want)
		}
		return err
	}}
}

func readAll(ctx context.Context, evs *store.Events, of []event.Query, _ int) (int, error) {
	return count(evs.Read(ctx, of[0], nil), -1)
}

// stream subscribes from the beginning and ends after the expected number of
// events.
func stream(ctx context.Context, evs *store.Events, of []event.Query, want int) (int, error) {
	return count(evs.Subscribe(ctx, of[0], 0), want)
}

func count(events iter.Seq2[event.Sequenced, error], limit int) (n int, err error) {
	for _, err := range events {
		if err != nil {
			return n, err
		}
		if n++; n == limit {
			break
		}
	}
	return n, nil
}

// project counts the events that each query selects; an event counts once for
// each query that selects it.
func project(ctx context.Context, evs *store.Events, of []event.Query, _ int) (total int, err error) {
	projectors := make([]event.Projector, len(of))
	for i, q := range of {
		projectors[i] = event.NewProjection(q, 0, func(n int, _ *event.Sequenced) int {
			total++
			return n + 1
		})
	}
	_, err = event.Project(ctx, evs, projectors...)
	return total, err
}

// memory measures how much memory grows while everything is read: of the
// engine's processes, or of this process if the engine runs in it.
func memory(ctx context.Context, cp *bench.Copy, ops *bench.Operations, loop pace.Config) (bench.Result, error) {
	debug.FreeOSMemory()
	sampler := probe.Start(ctx, 10*time.Millisecond, cp.DB.Engine().Stats)
	res, err := ops.Run(ctx, loop)
	samples := sampler.Stop()
	if err == nil {
		err = samples.Err
	}
	var first *int64
	rss := int64(0)
	for _, s := range samples.List {
		if first = cmp.Or(first, s.RSS); s.RSS != nil {
			rss = max(rss, *s.RSS-*first)
		}
	}
	res.More = append(res.More, bench.Metric{Value: float64(rss) / 1e6, Unit: "rss-MB"})
	return res, err
}
