package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/report"
)

// Key is a key with its value, as in names of benchmarks.
type Key struct{ Name, Value string }

// Keys are in the order of names: engine, layout, profile, durability, then the
// keys that a workload varies.
type Keys []Key

// Get returns the value of a key, or "".
func (k Keys) Get(name string) string {
	if i := slices.IndexFunc(k, func(k Key) bool { return k.Name == name }); i >= 0 {
		return k[i].Value
	}
	return ""
}

// of reports whether each of the given keys has one of its allowed values,
// which are separated by spaces.
func (k Keys) of(values map[string]string) bool {
	for name, value := range values {
		if !slices.Contains(strings.Fields(value), k.Get(name)) {
			return false
		}
	}
	return true
}

// With returns the keys with one of them set; a new key goes to the end.
func (k Keys) With(name, value string) Keys {
	k = slices.Clone(k)
	for i := range k {
		if k[i].Name == name {
			k[i].Value = value
			return k
		}
	}
	return append(k, Key{name, value})
}

// String returns a name such as "engine=sqlite/layout=arkiv". Characters that
// would end a value are replaced.
func (k Keys) String() string {
	parts := make([]string, len(k))
	for i, p := range k {
		parts[i] = p.Name + "=" + plain.Replace(p.Value)
	}
	return strings.Join(parts, "/")
}

var plain = strings.NewReplacer("=", ":", "/", "_", " ", "_", "\t", "_", "\n", "_")

// Record has the measurements of a variant in one repeat.
type Record struct {
	Name     string
	Keys     Keys
	Manifest bench.Manifest
	Count    int64 // number of measured operations
	Metrics  []bench.Metric
	Kinds    []pace.Kind      // latencies by kind of operation, if there are several
	Timeline []latency.Second // of operations at a rate
	Columns  []string         // of Rows
	Rows     [][]float64      // observations of single blocks
	Notes    []string         // for readers: omissions and their reasons
	Err      error            // why it failed

	operations int64 // of its phase, including the warm-up: the divisor of costs
}

// Metric returns the figure with a unit; false when the record has none.
func (r *Record) Metric(unit string) (float64, bool) {
	i := slices.IndexFunc(r.Metrics, func(m bench.Metric) bool { return m.Unit == unit })
	if i < 0 {
		return 0, false
	}
	return r.Metrics[i].Value, true
}

// glance is a preview of a record while others are still being measured:
// medians and rates.
func (r *Record) glance() string {
	var parts []string
	for _, m := range r.Metrics {
		if strings.HasSuffix(m.Unit, "p50-ms") || strings.HasSuffix(m.Unit, "/s") || m.Unit == "qps" {
			parts = append(parts, report.Number(m.Value)+" "+m.Unit)
		}
	}
	return strings.Join(parts, ", ")
}

// Note adds a remark for the readers of the results.
func (r *Record) Note(text string) { r.Notes = append(r.Notes, text) }

// Put adds a figure.
func (r *Record) Put(value float64, unit string) {
	r.Metrics = append(r.Metrics, bench.Metric{Value: value, Unit: unit})
}

// Kind adds the latencies of a kind of operation, if there were any.
func (r *Record) Kind(name string, rec *latency.Recorder) {
	if rec.Count() > 0 {
		r.Kinds = append(r.Kinds, pace.Kind{Name: name, Latency: rec})
	}
}

// Result adds a workload's figures, if it has begun.
func (r *Record) Result(res bench.Result) {
	if res.Outcome != nil {
		r.operations += res.Total
		r.Count += res.Count
		r.Metrics = append(r.Metrics, res.Metrics()...)
	}
}

// part adds the latencies of one of several workloads, with its name as a
// prefix of the units.
func (r *Record) part(name string, rec *latency.Recorder) {
	r.Count += rec.Count()
	r.Metrics = append(r.Metrics, rec.Metrics(name+"-")...)
	r.Kind(name, rec)
}

// Outcome adds the counts of a loop, and the latencies of all operations and of
// each kind.
func (r *Record) Outcome(out *pace.Outcome) {
	all := out.All()
	r.operations += out.Total
	r.Count += all.Count()
	r.Metrics = append(append(r.Metrics, all.Metrics("")...), out.Metrics()...)
	if len(out.Kinds) > 1 {
		r.Kinds = append(r.Kinds, out.Kinds...)
	}
	r.checking(out)
}

// checking notes a loop whose checks of answers take much of the machine.
func (r *Record) checking(out *pace.Outcome) {
	if part := out.Checking.Seconds() / max(out.Elapsed.Seconds(), 1e-9); part > muchChecking {
		r.Note(fmt.Sprintf("checking answers kept %.1f goroutines busy: on few cores it slowed the engine", part))
	}
}

// muchChecking is how many goroutines may check answers all the time without a
// note. Their processor is the engine's, where there are few cores.
const muchChecking = 0.2

// spare are units that follow from another figure of the line, or that hardly
// vary: errors are 0 in a successful run, and the page cache ends with the
// pages that were read.
var spare = []string{"errors", "op/s", "ent/s", "resident-after"}

// dropSpare removes the spare figures that no table of the experiment shows.
func (r *Record) dropSpare(e *Experiment) {
	shown := func(unit string) bool {
		return slices.ContainsFunc(e.Views, func(v report.View) bool {
			return slices.ContainsFunc(v.Columns, func(c report.Column) bool { return c.Unit == unit })
		})
	}
	r.Metrics = slices.DeleteFunc(r.Metrics, func(m bench.Metric) bool {
		failed := m.Unit == "errors" && m.Value > 0
		return slices.Contains(spare, m.Unit) && !failed && !shown(m.Unit)
	})
}

// costs adds the machine resources used per operation of a part.
func (r *Record) costs(part string, operations int64, c probe.Cost) {
	if operations > 0 {
		for _, m := range c.Each(operations) {
			r.Put(m.Value, part+m.Unit)
		}
	}
}

// samples adds samples to the timeline of a measurement, and summarises them:
// the longest log, and the pages read from the disk. Without per-second
// operation counts, the timeline covers the duration.
func (r *Record) samples(s *probe.Samples, started time.Time, seconds []latency.Second) {
	if r.Timeline = seconds; seconds == nil {
		seconds = make([]latency.Second, int(math.Ceil(time.Since(started).Seconds())))
	}
	s.Fill(seconds, started)
	var wal, read []float64
	for i := range seconds {
		if v, known := seconds[i].Sampled["wal-MB"]; known {
			wal = append(wal, v)
		}
		if v, known := seconds[i].Sampled["disk-read-MB"]; known {
			read = append(read, v)
		}
	}
	if len(wal) > 0 {
		r.Put(slices.Max(wal), "wal-MB")
	}
	if len(read) > 0 {
		r.Put(mean(read)*1e6/diskPage, "disk-reads/s")
	}
	if rate, known := steady(r.Timeline); known {
		r.Put(rate, "steady")
	}
	if s.Err != nil {
		r.Note("some samples are missing: " + s.Err.Error())
	}
}

// leastSteady is the minimum duration, in seconds, of a phase for steady.
const leastSteady = 10

// steady returns the rate in the last fifth of a phase divided by the rate in
// the first fifth: 1 if it did not change. It is not known for a phase that is
// too short, or idle in its first fifth.
func steady(seconds []latency.Second) (rate float64, known bool) {
	if len(seconds) < leastSteady {
		return 0, false
	}
	whole := seconds[:len(seconds)-1] // the last one is cut short
	fifth := len(whole) / 5
	count := func(part []latency.Second) (n float64) {
		for i := range part {
			n += float64(part[i].Count)
		}
		return n
	}
	first, last := count(whole[:fifth]), count(whole[len(whole)-fifth:])
	return last / first, first > 0
}

// diskPage is the unit, in bytes, in which disk reads are counted.
const diskPage = 4 << 10

func mean(values []float64) float64 { return stat.Mean(values, nil) }
