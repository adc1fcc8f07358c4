package pace

import (
	"cmp"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/result"
)

// Outcome is what a loop did, without its warm-up.
type Outcome struct {
	Started time.Time     // the end of the warm-up, where the timeline begins
	Elapsed time.Duration // to the end of the last operation, or of the schedule if that is later

	Scheduled int64 // operations that were due
	Count     int64 // that ended well
	Errors    int64 // that failed; they have no latency
	Skipped   int64 // that were never started
	Late      int64 // that started more than a millisecond late

	Kinds    []Kind           // sorted by name
	Lag      latency.Recorder // actual start less scheduled start, of all that started; empty in a closed loop
	Timeline latency.Timeline // latencies by the second in which operations ended

	// Untimed is the time that workers spent in operations after Stop, summed
	// over them. Where it is long, a closed loop was not at capacity, and an open
	// loop was late by its own doing.
	Untimed time.Duration
	Workers int

	open bool
}

// late is when a start is.
const late = time.Millisecond

// Kind is the operations of one name.
type Kind struct {
	Name    string
	Latency *latency.Recorder // from the scheduled start; in a closed loop, from the start
	Errors  int64
}

// sample is one operation as a worker saw it, in times since the loop began.
type sample struct {
	kind                      string
	scheduled, started, ended time.Duration
	untimed                   time.Duration
	failed                    bool
}

// batch is how many samples a worker collects before it takes the lock of the
// outcome: the lock and the histograms, which are shared to save memory, stay
// out of the way of operations.
const batch = 512

func newOutcome(started time.Time, open bool) *Outcome {
	return &Outcome{Started: started, Lag: *latency.NewRecorder(), open: open}
}

func (o *Outcome) add(s *sample, origin time.Duration) {
	ended, took := s.ended-origin, s.ended-s.started
	o.Elapsed = max(o.Elapsed, ended)
	o.Untimed += s.untimed
	if o.open {
		took = s.ended - s.scheduled
		lag := max(s.started-s.scheduled, 0)
		o.Lag.Record(lag)
		if lag > late {
			o.Late++
		}
	}
	k := o.made(s.kind)
	if s.failed {
		o.Errors++
		k.Errors++
		o.Timeline.Fail(ended)
		return
	}
	o.Count++
	k.Latency.Record(took)
	o.Timeline.Record(ended, took)
}

// made returns the kind of a name, new if need be.
func (o *Outcome) made(name string) *Kind {
	if k := o.Kind(name); k != nil {
		return k
	}
	o.Kinds = append(o.Kinds, Kind{Name: name, Latency: latency.NewRecorder()})
	return &o.Kinds[len(o.Kinds)-1]
}

func (o *Outcome) sort() {
	slices.SortFunc(o.Kinds, func(a, b Kind) int { return cmp.Compare(a.Name, b.Name) })
}

// Kind returns the operations of a name, or nil. There are few.
func (o *Outcome) Kind(name string) *Kind {
	for i := range o.Kinds {
		if o.Kinds[i].Name == name {
			return &o.Kinds[i]
		}
	}
	return nil
}

// Rate returns the operations a second that ended well, over the elapsed time
// and so with everything untimed.
func (o *Outcome) Rate() float64 {
	if o.Elapsed <= 0 {
		return 0
	}
	return float64(o.Count) / o.Elapsed.Seconds()
}

// Capacity returns the operations a second that the workers of a closed loop
// would reach if nothing were untimed.
func (o *Outcome) Capacity() float64 {
	busy := o.Elapsed - o.Untimed/time.Duration(max(o.Workers, 1))
	if busy <= 0 {
		return 0
	}
	return float64(o.Count) / busy.Seconds()
}

// Distributions returns the latencies of each kind.
func (o *Outcome) Distributions() []result.Distribution {
	list := make([]result.Distribution, len(o.Kinds))
	for i, k := range o.Kinds {
		list[i] = k.Latency.Distribution(k.Name)
	}
	return list
}

// All returns the latencies of all kinds together.
func (o *Outcome) All() *latency.Recorder {
	all := latency.NewRecorder()
	for _, k := range o.Kinds {
		all.Merge(k.Latency)
	}
	return all
}

// Seconds returns the timeline: entry i is second i of the measurement.
func (o *Outcome) Seconds() []result.Second { return o.Timeline.Seconds(o.Elapsed) }

// Metrics returns qps and errors, and for an open loop late, skipped and lag-ms
// (the 99th percentile of what starts were late by).
func (o *Outcome) Metrics() []result.Metric {
	list := []result.Metric{{Value: o.Rate(), Unit: "qps"}, {Value: float64(o.Errors), Unit: "errors"}}
	if !o.open {
		return list
	}
	return append(list,
		result.Metric{Value: float64(o.Late), Unit: "late"},
		result.Metric{Value: float64(o.Skipped), Unit: "skipped"},
		result.Metric{Value: float64(o.Lag.Quantile(99)) / float64(time.Millisecond), Unit: "lag-ms"})
}

// Merge adds the outcome of another loop of the same form that ran at the same
// time, see Config.Start.
func (o *Outcome) Merge(other *Outcome) {
	o.Elapsed = max(o.Elapsed, other.Elapsed)
	o.Scheduled += other.Scheduled
	o.Count += other.Count
	o.Errors += other.Errors
	o.Skipped += other.Skipped
	o.Late += other.Late
	o.Untimed += other.Untimed
	o.Workers += other.Workers
	o.Lag.Merge(&other.Lag)
	o.Timeline.Merge(&other.Timeline)
	for _, from := range other.Kinds {
		to := o.made(from.Name)
		to.Errors += from.Errors
		to.Latency.Merge(from.Latency)
	}
	o.sort()
}
