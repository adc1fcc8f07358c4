package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

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

func (f *EventFlags) datasets() (list []EventData, err error) {
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
			list = append(list, TinyEvents)
		case "small":
			list = append(list, SmallEvents)
		default:
			n, err := strconv.Atoi(name)
			if err != nil || n < 100 {
				return nil, fmt.Errorf("-varve.events: want tiny, small or a number from 100, got %q", name)
			}
			list = append(list, EventsOf(n))
		}
	}
	return list, nil
}

// each runs a benchmark on an open copy of each data set in each layout.
func (s EventSuite) each(b *testing.B, f func(b *testing.B, cp *EventCopy)) {
	datasets, err := s.Flags.datasets()
	must(b, err)
	linked, err := s.Engine.driver()
	must(b, err)
	layouts := store.EventLayouts(linked.Info.Dialect)
	if s.Flags.layouts != "" {
		layouts = strings.Split(s.Flags.layouts, ",")
	}
	opts, err := s.Suite.Flags.options()
	must(b, err)
	for _, layout := range layouts {
		for _, data := range datasets {
			name := "engine=" + s.Engine.Name + "/layout=" + layout + "/profile=" + data.Name + "/durability=" + string(opts.Durability)
			b.Run(name, func(b *testing.B) {
				if !slices.Contains(linked.Capabilities.Durabilities, opts.Durability) {
					b.Skipf("engine %s has no durability %s", s.Engine.Name, opts.Durability)
				}
				cache, err := OpenCache("")
				must(b, err)
				ctx := context.Background() // the benchmark's ends before its clean-up
				cp, err := cache.OpenEvents(ctx, EventDataset{Engine: s.Engine, Layout: layout, Data: data}, opts)
				must(b, err)
				b.Cleanup(func() { must(b, cp.Close()) })
				f(b, cp)
			})
		}
	}
}

// sub runs one workload and reports its metrics.
func sub(b *testing.B, name string, workload func(b *testing.B) (EventResult, error)) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		res, err := workload(b)
		must(b, err)
		report(b, res.Metrics())
	})
}

// RunEventAppend measures appends of 1 to 1,000 events, an append an operation.
func RunEventAppend(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *EventCopy) {
		for _, batch := range []int{1, 10, 100, 1000} {
			sub(b, fmt.Sprintf("batch=%d", batch), func(b *testing.B) (EventResult, error) {
				return AppendEvents(b.Context(), cp.Events, AppendEventsConfig{Batch: batch, Loop: b})
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
	s.each(b, func(b *testing.B, cp *EventCopy) {
		for _, n := range []int{1, 16} {
			sub(b, fmt.Sprintf("clients=%d", n), func(b *testing.B) (EventResult, error) {
				return DecideEvents(b.Context(), cp.Events, DecideEventsConfig{Clients: n, Each: 50, Loop: b})
			})
		}
	})
}

func runClients(b *testing.B, s EventSuite, clients []int, conditional bool) {
	s.each(b, func(b *testing.B, cp *EventCopy) {
		for _, n := range clients {
			sub(b, fmt.Sprintf("clients=%d", n), func(b *testing.B) (EventResult, error) {
				return AppendEvents(b.Context(), cp.Events, AppendEventsConfig{Clients: n, Each: 50, Conditional: conditional, Loop: b})
			})
		}
	})
}

// eventQueries are those of go-crablet's report.
func eventQueries() []struct {
	name string
	q    store.EventQuery
} {
	return []struct {
		name string
		q    store.EventQuery
	}{
		{"course-by-id", event.Typed("CourseDefined", courseTag(1))},
		{"courses-by-category", event.Typed("CourseDefined", event.NewTag("category", eventSubjects[0]))},
		{"student", event.Tagged(studentTag(1))},
		{"or", event.Typed("CourseDefined", courseTag(1)).Or(event.Typed("StudentRegistered", studentTag(1)))},
		{"enrolments-by-grade", event.Typed("StudentEnrolledInCourse", event.NewTag("grade", "A"))},
		{"everything", event.All()},
	}
}

// RunEventRead measures each query, read to its end.
func RunEventRead(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *EventCopy) {
		for _, q := range eventQueries() {
			want := cp.Data.Count(q.q)
			sub(b, "query="+q.name, func(b *testing.B) (EventResult, error) {
				return ReadEvents(b.Context(), cp.Events, ReadEventsConfig{Query: q.q, Events: want, Loop: b})
			})
		}
	})
}

// RunEventStream measures a subscription that replays the events of one student.
func RunEventStream(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *EventCopy) {
		q := event.Tagged(studentTag(1))
		want := cp.Data.Count(q)
		sub(b, "query=student", func(b *testing.B) (EventResult, error) {
			return StreamEvents(b.Context(), cp.Events, ReadEventsConfig{Query: q, Events: want, Loop: b})
		})
	})
}

// RunEventReadMemory measures by how much the memory grows while everything is read
// once: that of the process and its engine's processes, the engine's caches
// included (rss-MB), and the heap of this process (heap-MB).
func RunEventReadMemory(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *EventCopy) {
		b.Run("query=everything", func(b *testing.B) {
			var grown Growth
			for b.Loop() {
				var err error
				grown, err = ReadEventsMemory(b.Context(), cp)
				must(b, err)
			}
			report(b, []Metric{metric(float64(grown.RSS)/mega, "rss-MB"), metric(float64(grown.Heap)/mega, "heap-MB")})
		})
	})
}

// RunEventProject measures one and five projections in a pass: of one thing each.
func RunEventProject(b *testing.B, s EventSuite) {
	s.each(b, func(b *testing.B, cp *EventCopy) {
		all := []store.EventQuery{
			event.Typed("CourseDefined", courseTag(1)), event.Typed("StudentRegistered", studentTag(1)),
			event.Typed("StudentEnrolledInCourse", studentTag(1)), event.Typed("StudentEnrolledInCourse", courseTag(1)),
			event.Typed("StudentEnrolledInCourse", studentTag(1), courseTag(1)),
		}
		for _, n := range []int{1, 5} {
			want := 0
			for _, q := range all[:n] {
				want += cp.Data.Count(q)
			}
			sub(b, fmt.Sprintf("projectors=%d", n), func(b *testing.B) (EventResult, error) {
				return ProjectEvents(b.Context(), cp.Events, ProjectEventsConfig{Queries: all[:n], Events: want, Loop: b})
			})
		}
	})
}
