// Package runs puts the records of a result set in order: repetitions of one
// configuration together, with the median of each of their figures. Reports and
// verdicts both read results through it, so that they speak of the same numbers.
package runs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
)

// Group is a configuration with its repetitions.
type Group struct {
	Experiment string
	Name       string
	result.Config
	Records []*result.Record // in the order of their repetition
}

// Gather groups records by their key, in the order in which keys first appear.
// Second measurements of the same are left out: they are no repetitions.
func Gather(records []result.Record) []*Group {
	var firsts []*result.Record
	for i := range records {
		if r := &records[i]; !r.Again() {
			firsts = append(firsts, r)
		}
	}
	var groups []*Group
	for _, same := range By(firsts, (*result.Record).Key) {
		slices.SortStableFunc(same, func(a, b *result.Record) int { return a.Repeat - b.Repeat })
		groups = append(groups, &Group{Experiment: same[0].Experiment, Name: same[0].Name, Config: same[0].Config, Records: same})
	}
	return groups
}

// By parts a list into those that have a key in common, in the order in which keys first
// appear.
func By[V any, K comparable](list []V, key func(V) K) (parts [][]V) {
	at := map[K]int{}
	for _, v := range list {
		i, known := at[key(v)]
		if !known {
			i, parts = len(parts), append(parts, nil)
			at[key(v)] = i
		}
		parts[i] = append(parts[i], v)
	}
	return parts
}

// AppendNew appends a value that the list does not have.
func AppendNew[V comparable](list []V, v V) []V {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// Of returns the groups of an experiment.
func Of(groups []*Group, experiment string) []*Group {
	return Where(groups, func(g *Group) bool { return g.Experiment == experiment })
}

// Where returns the groups for which keep is true.
func Where(groups []*Group, keep func(*Group) bool) []*Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g *Group) bool { return !keep(g) })
}

// Key is the key of the group's records.
func (g *Group) Key() string { return g.Records[0].Key() }

// Scale returns the size of the data as a multiple of the base profile; false
// when the configuration does not say.
func (g *Group) Scale() (float64, bool) {
	v, err := strconv.ParseFloat(g.Get("scale"), 64)
	return v, err == nil && v > 0
}

// Good returns the repetitions that ended well. What a failed one measured
// before it failed is not comparable with them.
func (g *Group) Good() []*result.Record {
	return slices.DeleteFunc(slices.Clone(g.Records), func(r *result.Record) bool { return r.Error != "" })
}

// End tells what a process left that ended before it had measured all: no figures,
// but why they are missing.
func End(r *result.Record) bool { return len(r.Config) <= 1 && r.Error != "" }

// Failed tells whether no repetition ended well.
func (g *Group) Failed() bool { return len(g.Good()) == 0 }

// Measure names a figure of a record. With a kind it is a quantile of the
// latencies of that kind of operation, else one of the record's metrics.
type Measure struct {
	Unit string // of a metric, or p50-ms p95-ms p99-ms p999-ms max-ms mean-ms of latencies
	Kind string // of operation; "" is the metric
}

// Of returns the figure in a record. Where the metric is not there but the
// record has latencies of commits, or of one kind only, these answer. A high
// quantile of too few operations is no figure: it would be their maximum; and nothing is
// one of a run that timed nothing.
func (m Measure) Of(r *result.Record) (float64, bool) {
	if timedNothing(r) {
		return 0, false
	}
	d, unit := m.distribution(r)
	if least[unit] > 0 && (d == nil || d.Count < least[unit]) {
		return 0, false
	}
	if v, ok := r.Metric(m.Unit); ok && m.Kind == "" {
		return v, true
	}
	return Quantile(d, unit)
}

// timedNothing tells whether a run without an error was at the end of its work before its
// warm-up was over: its rates are zero, or a count over no time.
func timedNothing(r *result.Record) bool {
	all := r.Latency("all")
	return r.Error == "" && all != nil && all.Count == 0
}

// least is how many operations a quantile needs to be told from the maximum.
var least = map[string]int64{"p99-ms": result.P99Needs, "p999-ms": result.P999Needs}

// distribution returns the latencies that a figure is a quantile of, or nil, and
// the unit that it has there. Metrics name other kinds than commits in their
// unit: p99-ms-A is of mix-A, and read-p99-ms of all reads.
func (m Measure) distribution(r *result.Record) (*result.Distribution, string) {
	if m.Kind != "" {
		return r.Latency(m.Kind), m.Unit
	}
	if unit, mix, ok := strings.Cut(m.Unit, "-ms-"); ok {
		return r.Latency("mix-" + mix), unit + "-ms"
	}
	if unit, ok := strings.CutPrefix(m.Unit, "read-"); ok {
		return r.Latency("all"), unit
	}
	if d := r.Latency("commit"); d != nil {
		return d, m.Unit
	}
	if d := r.Latency("all"); d != nil || len(r.Latencies) != 1 {
		return d, m.Unit
	}
	return &r.Latencies[0], m.Unit
}

// Count returns the operations that a figure of latencies is of in each of the
// group's repetitions, at least; 0 when a figure is none of latencies.
func (g *Group) Count(m Measure) int64 {
	var fewest int64
	for i, r := range g.Good() {
		d, unit := m.distribution(r)
		if d == nil || quantiles[unit] == nil {
			return 0
		}
		if i == 0 || d.Count < fewest {
			fewest = d.Count
		}
	}
	return fewest
}

// Longest returns the median over the repetitions of the longest operation that a
// figure of latencies is of.
func (g *Group) Longest(m Measure) (float64, bool) {
	var values []float64
	for _, r := range g.Good() {
		if d, _ := m.distribution(r); d != nil {
			values = append(values, Milliseconds(d.Max))
		}
	}
	return Median(values)
}

var quantiles = map[string]func(*result.Distribution) time.Duration{
	"p50-ms":  func(d *result.Distribution) time.Duration { return d.P50 },
	"p95-ms":  func(d *result.Distribution) time.Duration { return d.P95 },
	"p99-ms":  func(d *result.Distribution) time.Duration { return d.P99 },
	"p999-ms": func(d *result.Distribution) time.Duration { return d.P999 },
	"max-ms":  func(d *result.Distribution) time.Duration { return d.Max },
	"mean-ms": func(d *result.Distribution) time.Duration { return d.Mean },
}

// Quantile returns a figure of latencies by its unit; false when they have none,
// or are too few for it.
func Quantile(d *result.Distribution, unit string) (float64, bool) {
	of := quantiles[unit]
	if d == nil || of == nil || d.Count == 0 || d.Count < least[unit] {
		return 0, false
	}
	return Milliseconds(of(d)), true
}

// Milliseconds converts a duration.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Values returns the figure of each repetition that ended well and has it.
func (g *Group) Values(m Measure) []float64 {
	if m.Unit == "qps" && g.Get("qps") == "0" {
		return nil // asked for no reads: the rate of operations is that of commits
	}
	var values []float64
	for _, r := range g.Good() {
		if v, ok := m.Of(r); ok {
			values = append(values, v)
		}
	}
	return values
}

// Median returns the median over the repetitions; false when none has it.
func (g *Group) Median(m Measure) (float64, bool) {
	return Median(g.Values(m))
}

// Median returns the median of values; false when there are none.
func Median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	return stat.Median(values), true
}

// Distinct returns the values of a key over groups, in the order in which they
// first appear.
func Distinct(groups []*Group, key string) (values []string) {
	for _, g := range groups {
		values = AppendNew(values, g.Get(key))
	}
	return values
}

// Number writes a figure with three significant digits, thousands apart: what a
// single machine's measurement is good for.
func Number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return Thousands(fmt.Sprintf("%.0f", v))
	}
	return fmt.Sprintf("%.3g", v)
}

// Thousands puts commas into a whole number.
func Thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
