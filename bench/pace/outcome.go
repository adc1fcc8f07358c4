package pace

import (
	"cmp"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/latency"
)

// Outcome is what a loop did after its warm-up.
type Outcome struct {
	Started time.Time     // the end of the warm-up, where the timeline begins
	Elapsed time.Duration // to the end of the last operation, or of the schedule if that is later

	Total     int64 // operations started, including the warm-up's
	Scheduled int64 // operations that were due
	Count     int64 // operations that succeeded
	Errors    int64 // operations that failed; they have no latency
	First     error // the first of these errors; nil when there is none
	Skipped   int64 // arrivals that were given up before they started
	Late      int64 // that started more than a millisecond late

	Kinds []Kind // sorted by name

	Workers  int
	Checking time.Duration // of all workers' checks of answers, which run concurrently with the operations

	open    bool
	timed   time.Duration     // time of all operations after the warm-up, including failed ones
	seconds []latency.Second  // in which operations ended
	waited  *latency.Recorder // waiting times of arrivals that were given up; nil for none
}

// lateAfter is the delay from which a start counts as late.
const lateAfter = time.Millisecond

// Kind has the operations of one kind.
type Kind struct {
	Name    string
	Latency *latency.Recorder // from the scheduled start; in a closed loop, from the start
}

// sample is one operation as its worker recorded it. Times count from the
// loop's beginning.
type sample struct {
	kind                      string
	scheduled, started, ended time.Duration
	err                       error
}

// batch is how many samples a worker collects before it takes the lock of the
// outcome. The histograms are shared to save memory; batches keep the lock out
// of the operations' way.
const batch = 512

func (o *Outcome) add(s *sample, origin time.Duration) {
	ended, took := s.ended-origin, s.ended-s.started
	o.Elapsed = max(o.Elapsed, ended)
	o.timed += s.ended - s.started
	if o.open {
		took = s.ended - s.scheduled
		if s.started-s.scheduled > lateAfter {
			o.Late++
		}
	}
	k, second := o.kindNamed(s.kind), o.second(ended)
	if s.err != nil {
		o.First = cmp.Or(o.First, s.err)
		o.Errors++
		second.Errors++
		return
	}
	o.Count++
	k.Latency.Record(took)
	second.Count++
	second.Max = max(second.Max, took)
}

// second returns the entry of the second in which a time lies.
func (o *Outcome) second(at time.Duration) *latency.Second {
	i := int(max(at, 0) / time.Second)
	for len(o.seconds) <= i {
		o.seconds = append(o.seconds, latency.Second{At: float64(len(o.seconds) + 1)})
	}
	return &o.seconds[i]
}

// kindNamed returns the record of a kind, and adds it if it is missing.
func (o *Outcome) kindNamed(name string) *Kind {
	i, found := slices.BinarySearchFunc(o.Kinds, name, func(k Kind, name string) int { return cmp.Compare(k.Name, name) })
	if !found {
		o.Kinds = slices.Insert(o.Kinds, i, Kind{Name: name, Latency: latency.NewRecorder()})
	}
	return &o.Kinds[i]
}

// Success returns the share (0…1) of the due operations that succeeded.
func (o *Outcome) Success() float64 { return float64(o.Count) / float64(max(o.Scheduled, 1)) }

// Rate returns the successful operations a second. The elapsed time includes
// everything untimed.
func (o *Outcome) Rate() float64 {
	if o.Elapsed <= 0 {
		return 0
	}
	return float64(o.Count) / o.Elapsed.Seconds()
}

// Busy returns the share (0…1) of the workers' time spent in operations. The
// rest is the loop's overhead: making the next operation, or checking the last.
// The rate of a closed loop that is not busy is not the engine's capacity. For
// an open loop it is 0, because its workers wait for arrivals.
func (o *Outcome) Busy() float64 {
	if o.open || o.Elapsed <= 0 {
		return 0
	}
	return o.timed.Seconds() / (o.Elapsed.Seconds() * float64(max(o.Workers, 1)))
}

// giveUp counts an arrival that was given up, with the time that it waited.
func (o *Outcome) giveUp(waited time.Duration) {
	if o.waited == nil {
		o.waited = latency.NewRecorder()
	}
	o.Skipped++
	o.waited.Record(waited)
}

// All returns the latencies of all kinds together. An arrival that was given up
// is included with the time that it waited, because a distribution without it
// would lack the worst cases: its latency is at least that.
func (o *Outcome) All() *latency.Recorder {
	all := latency.NewRecorder()
	for _, k := range o.Kinds {
		all.Merge(k.Latency)
	}
	if o.waited != nil {
		all.Merge(o.waited)
	}
	return all
}

// Seconds returns one entry for each second of the measurement up to the last
// operation, idle seconds too. The last second is usually incomplete.
func (o *Outcome) Seconds() []latency.Second {
	list := slices.Clone(o.seconds)
	if n := len(list); n > 0 {
		list[n-1].At = min(list[n-1].At, o.Elapsed.Seconds())
	}
	return list
}

// Metrics returns qps and errors; late and skipped for an open loop, busy for a
// closed one.
func (o *Outcome) Metrics() []latency.Metric {
	list := []latency.Metric{{Value: o.Rate(), Unit: "qps"}, {Value: float64(o.Errors), Unit: "errors"}}
	if !o.open {
		return append(list, latency.Metric{Value: o.Busy(), Unit: "busy"})
	}
	return append(list, latency.Metric{Value: float64(o.Late), Unit: "late"}, latency.Metric{Value: float64(o.Skipped), Unit: "skipped"})
}
