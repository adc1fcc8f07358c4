package enrolment

import (
	"cmp"
	"context"
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

// Workload is a measurement on a store that holds a Data.
type Workload struct {
	Group      string // what is measured, as in the names of benchmarks: "Append" of BenchmarkEventAppend
	Key, Value string // what tells it from others of its group

	// Run measures in a loop. It fails with bench.ErrMismatch when the store does not hold or answer what it should.
	Run func(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error)

	// Each gives f the same one operation at a time; nil where the figure is not of
	// an operation.
	Each func(ctx context.Context, cp *bench.Copy, f func(*bench.Operations) error) error
}

// measured is what a Workload is made of.
type measured interface {
	run(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error)
	each(ctx context.Context, cp *bench.Copy, f func(*bench.Operations) error) error
}

// Workloads returns all, in a fixed order.
func Workloads(d Data) (list []Workload) {
	add := func(group, key, value string, m measured) {
		list = append(list, Workload{Group: group, Key: key, Value: value, Run: m.run, Each: m.each})
	}
	for _, n := range []int{1, 10, 100, 1000} {
		add("Append", "batch", strconv.Itoa(n), Writes{Clients: 1, Do: Append, batch: n})
	}
	for _, n := range []int{1, 5, 10, 20} {
		add("AppendConcurrent", "clients", strconv.Itoa(n), Writes{Clients: n, Do: Append})
	}
	for _, n := range []int{1, 16, 128} {
		add("AppendConditional", "clients", strconv.Itoa(n), Writes{Clients: n, Do: AppendIfNew})
	}
	for _, n := range []int{1, 16} {
		add("AppendRandom", "clients", strconv.Itoa(n), Writes{Clients: n, Do: AppendIfNew, random: true})
		add("Decide", "clients", strconv.Itoa(n), Writes{Clients: n, Do: Decide})
	}
	for _, q := range queries {
		add("Read", "query", q.name, reads{data: d, of: []event.Query{q.of}, do: readAll})
	}
	list = append(list, Workload{Group: "ReadMemory", Key: "query", Value: "everything",
		Run: reads{data: d, of: []event.Query{event.All()}, do: readAll}.memory})
	add("Stream", "query", "student", reads{data: d, of: []event.Query{event.Tagged(student)}, do: stream})
	for _, n := range []int{1, 5} {
		add("Project", "projectors", strconv.Itoa(n), reads{data: d, of: projected[:n], do: project})
	}
	return list
}

// The tags of the second of the generated courses and students.
var course, student = courseTag(1), studentTag(1)

// queries are those of go-crablet's report, and a frequent tag beside another one.
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

// projected are of one thing each.
var projected = []event.Query{
	event.Typed("CourseDefined", course), event.Typed("StudentRegistered", student),
	event.Typed(enrolled, student), event.Typed(enrolled, course), event.Typed(enrolled, student, course),
}

// reads is passes over what queries select.
type reads struct {
	data Data
	of   []event.Query

	// do makes a pass and returns the number of events, which is wanted.
	do func(ctx context.Context, evs *store.Events, of []event.Query, want int) (int, error)
}

// run records the latency of each pass.
func (r reads) run(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error) {
	want := r.want()
	out, err := pace.Loop(ctx, loop, func(ctx context.Context, _ *pace.Step) error { return r.pass(ctx, cp, want) })
	return bench.Result{Outcome: out, Events: uint64(out.Count) * uint64(want)}, err
}

func (r reads) each(_ context.Context, cp *bench.Copy, f func(*bench.Operations) error) error {
	want := r.want()
	return f(&bench.Operations{Do: func(ctx context.Context, _ int) error { return r.pass(ctx, cp, want) }})
}

// want is how many events the queries select of the data.
func (r reads) want() (n int) {
	for _, q := range r.of {
		n += r.data.Count(q)
	}
	return n
}

// pass is one, which must find as many events as are wanted.
func (r reads) pass(ctx context.Context, cp *bench.Copy, want int) error {
	n, err := r.do(ctx, cp.Events, r.of, want)
	if err == nil && n != want {
		err = fmt.Errorf("%w: %d events, want %d", bench.ErrMismatch, n, want)
	}
	return err
}

func readAll(ctx context.Context, evs *store.Events, of []event.Query, _ int) (int, error) {
	return count(evs.Read(ctx, of[0], nil), -1)
}

// stream subscribes from the beginning, until as many events have come as are wanted.
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

// project counts what the queries select, an event once for each that does.
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

// memory tells by how much memory grows while everything is read: that of the engine's processes,
// or of this one, which it is in.
func (r reads) memory(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error) {
	debug.FreeOSMemory()
	sampler := probe.Start(ctx, 10*time.Millisecond, cp.DB.Engine().Stats)
	res, err := r.run(ctx, cp, loop)
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
