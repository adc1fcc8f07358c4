package gobench

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// EventSuite is the benchmarks of the event store on one engine.
type EventSuite struct {
	Suite
	Flags *EventFlags
}

// EventFlags are what these benchmarks can be told beside the others' flags.
type EventFlags struct {
	data    string
	layouts string
}

// RegisterEventFlags adds the flags to a set.
func RegisterEventFlags(set *flag.FlagSet) *EventFlags {
	f := new(EventFlags)
	set.StringVar(&f.data, "varve.events", "", "events in the store before a benchmark begins: tiny, small or a number; several separated by commas (default tiny,small, with -short tiny)")
	set.StringVar(&f.layouts, "varve.eventlayouts", "", "event layouts, separated by commas (default: all that the engine has)")
	return f
}

func (f *EventFlags) datasets() (list []bench.EventData, err error) {
	names := f.data
	switch {
	case names == "" && testing.Short():
		names = "tiny"
	case names == "":
		names = "tiny,small"
	}
	for name := range strings.SplitSeq(names, ",") {
		switch name {
		case "tiny":
			list = append(list, bench.TinyEvents)
		case "small":
			list = append(list, bench.SmallEvents)
		default:
			n, err := strconv.Atoi(name)
			if err != nil || n < 100 {
				return nil, fmt.Errorf("-varve.events: want tiny, small or a number from 100, got %q", name)
			}
			list = append(list, bench.EventsOf(n))
		}
	}
	return list, nil
}

// each runs a benchmark on an open copy of each data set in each layout.
func (s EventSuite) each(b *testing.B, f func(b *testing.B, cp *bench.EventCopy)) {
	datasets, err := s.Flags.datasets()
	must(b, err)
	layouts := store.EventLayouts(linked(b, s.Engine).Info.Dialect)
	if s.Flags.layouts != "" {
		layouts = strings.Split(s.Flags.layouts, ",")
	}
	opts, err := s.Suite.Flags.options()
	must(b, err)
	for _, layout := range layouts {
		for _, data := range datasets {
			name := "engine=" + s.Engine.Name + "/layout=" + layout + "/profile=" + data.Name + "/durability=" + string(opts.Durability)
			b.Run(name, func(b *testing.B) {
				needs(b, s.Engine, opts.Durability)
				cache, err := bench.OpenCache("")
				must(b, err)
				ctx := context.Background() // the benchmark's ends before its clean-up
				cp, err := cache.OpenEvents(ctx, bench.EventDataset{Engine: s.Engine, Layout: layout, Data: data}, opts)
				must(b, err)
				b.Cleanup(func() { must(b, cp.Close()) })
				f(b, cp)
			})
		}
	}
}

// sub runs one workload and reports its metrics.
func sub(b *testing.B, name string, workload func(b *testing.B) (bench.EventResult, error)) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		res, err := workload(b)
		must(b, err)
		report(b, res.Metrics())
	})
}

// RunEventAppend measures appends of 1 to 1,000 events, an append an operation.
func RunEventAppend(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *bench.EventCopy) {
		for _, batch := range []int{1, 10, 100, 1000} {
			sub(b, fmt.Sprintf("batch=%d", batch), func(b *testing.B) (bench.EventResult, error) {
				return bench.AppendEvents(b.Context(), cp.Events, bench.AppendEventsConfig{Batch: batch, Loop: b})
			})
		}
	})
}

// RunEventAppendConcurrent measures rounds in which each client appends 50 single
// events.
func RunEventAppendConcurrent(b *testing.B, s EventSuite) {
	runClients(b, s, []int{1, 5, 10, 20}, false)
}

// RunEventAppendConditional measures rounds in which each client appends 50 single
// events on the condition that a tag of theirs is new.
func RunEventAppendConditional(b *testing.B, s EventSuite) {
	runClients(b, s, []int{1, 16, 128}, true)
}

// RunEventDecide measures decisions: a projection and the append that it guards.
func RunEventDecide(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *bench.EventCopy) {
		for _, n := range []int{1, 16} {
			sub(b, fmt.Sprintf("clients=%d", n), func(b *testing.B) (bench.EventResult, error) {
				return bench.DecideEvents(b.Context(), cp.Events, bench.DecideEventsConfig{Clients: n, Each: 50, Loop: b})
			})
		}
	})
}

func runClients(b *testing.B, s EventSuite, clients []int, conditional bool) {
	s.each(b, func(b *testing.B, cp *bench.EventCopy) {
		for _, n := range clients {
			sub(b, fmt.Sprintf("clients=%d", n), func(b *testing.B) (bench.EventResult, error) {
				return bench.AppendEvents(b.Context(), cp.Events, bench.AppendEventsConfig{Clients: n, Each: 50, Conditional: conditional, Loop: b})
			})
		}
	})
}

// The tags of the first of the generated courses and students.
var course, student = event.NewTag("course_id", "course-1"), event.NewTag("student_id", "student-1")

// eventQueries are those of go-crablet's report.
func eventQueries() []struct {
	name string
	q    store.EventQuery
} {
	return []struct {
		name string
		q    store.EventQuery
	}{
		{"course-by-id", event.Typed("CourseDefined", course)},
		{"courses-by-category", event.Typed("CourseDefined", event.NewTag("category", "Computer Science"))},
		{"student", event.Tagged(student)},
		{"or", event.Typed("CourseDefined", course).Or(event.Typed("StudentRegistered", student))},
		{"enrolments-by-grade", event.Typed("StudentEnrolledInCourse", event.NewTag("grade", "A"))},
		{"everything", event.All()},
	}
}

// RunEventRead measures each query, read to its end.
func RunEventRead(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *bench.EventCopy) {
		for _, q := range eventQueries() {
			want := cp.Data.Count(q.q)
			sub(b, "query="+q.name, func(b *testing.B) (bench.EventResult, error) {
				return bench.ReadEvents(b.Context(), cp.Events, bench.ReadEventsConfig{Query: q.q, Events: want, Loop: b})
			})
		}
	})
}

// RunEventStream measures a subscription that replays the events of one student.
func RunEventStream(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *bench.EventCopy) {
		q := event.Tagged(student)
		want := cp.Data.Count(q)
		sub(b, "query=student", func(b *testing.B) (bench.EventResult, error) {
			return bench.StreamEvents(b.Context(), cp.Events, bench.ReadEventsConfig{Query: q, Events: want, Loop: b})
		})
	})
}

// RunEventReadMemory measures by how much the memory grows while everything is read
// once: that of the process and its engine's processes, the engine's caches
// included (rss-MB), and the heap of this process (heap-MB).
func RunEventReadMemory(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *bench.EventCopy) {
		b.Run("query=everything", func(b *testing.B) {
			var grown bench.Growth
			for b.Loop() {
				var err error
				grown, err = bench.ReadEventsMemory(b.Context(), cp)
				must(b, err)
			}
			report(b, []bench.Metric{{Value: float64(grown.RSS) / 1e6, Unit: "rss-MB"}, {Value: float64(grown.Heap) / 1e6, Unit: "heap-MB"}})
		})
	})
}

// RunEventProject measures one and five projections in a pass: of one thing each.
func RunEventProject(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *bench.EventCopy) {
		all := []store.EventQuery{
			event.Typed("CourseDefined", course), event.Typed("StudentRegistered", student),
			event.Typed("StudentEnrolledInCourse", student), event.Typed("StudentEnrolledInCourse", course),
			event.Typed("StudentEnrolledInCourse", student, course),
		}
		for _, n := range []int{1, 5} {
			want := 0
			for _, q := range all[:n] {
				want += cp.Data.Count(q)
			}
			sub(b, fmt.Sprintf("projectors=%d", n), func(b *testing.B) (bench.EventResult, error) {
				return bench.ProjectEvents(b.Context(), cp.Events, bench.ProjectEventsConfig{Queries: all[:n], Events: want, Loop: b})
			})
		}
	})
}
