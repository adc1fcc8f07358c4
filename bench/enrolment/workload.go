package enrolment

import (
	"context"
	"strconv"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/event"
)

// Workload is a measurement on a store that holds a Data.
type Workload struct {
	Group      string // what is measured, as in the names of benchmarks: "Append" of BenchmarkEventAppend
	Key, Value string // what tells it from others of its group

	// Run measures in a loop. It fails with bench.ErrMismatch when the store does
	// not hold or answer what it should.
	Run func(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error)
}

// Workloads returns all, in a fixed order.
func Workloads(d Data) (list []Workload) {
	add := func(group, key, value string, run func(context.Context, *bench.Copy, pace.Config) (bench.Result, error)) {
		list = append(list, Workload{Group: group, Key: key, Value: value, Run: run})
	}
	for _, n := range []int{1, 10, 100, 1000} {
		add("Append", "batch", strconv.Itoa(n), Writes{Clients: 1, Do: Append, batch: n}.on)
	}
	for _, n := range []int{1, 5, 10, 20} {
		add("AppendConcurrent", "clients", strconv.Itoa(n), Writes{Clients: n, Do: Append}.on)
	}
	for _, n := range []int{1, 16, 128} {
		add("AppendConditional", "clients", strconv.Itoa(n), Writes{Clients: n, Do: AppendIfNew}.on)
	}
	for _, beside := range []string{"none", "costly"} {
		add("AppendBeside", "client", beside, Writes{Clients: 8, Do: AppendIfNew, costly: beside == "costly"}.on)
	}
	for _, n := range []int{1, 16} {
		add("Decide", "clients", strconv.Itoa(n), Writes{Clients: n, Do: Decide}.on)
	}
	add("Decide", "items", "1000", Writes{Clients: 1, Do: decideMany}.on)
	for _, q := range queries {
		add("Read", "query", q.name, reads{data: d, of: []event.Query{q.of}, do: readAll}.run)
	}
	add("ReadMemory", "query", "everything", reads{data: d, of: []event.Query{event.All()}, do: readAll}.memory)
	add("Stream", "query", "student", reads{data: d, of: []event.Query{event.Tagged(student)}, do: stream}.run)
	for _, n := range []int{1, 5} {
		add("Project", "projectors", strconv.Itoa(n), reads{data: d, of: projected[:n], do: project}.run)
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
