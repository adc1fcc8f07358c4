package result

import (
	"strings"
	"time"
)

// Line is what a record says in a line of the Go benchmark format.
type Line struct {
	Experiment string
	Name       string
	Config     Config
	Count      int64 // operations that the figures are taken from; 1 when the record does not say
	Metrics    []Metric
}

// Key tells lines apart as Record.Key does records.
func (l *Line) Key() string {
	r := Record{Experiment: l.Experiment, Name: l.Name, Config: l.Config}
	return r.Key()
}

// kindKey is the key that the kind of an operation gets in names of benchmarks.
const kindKey = "kind"

// Lines returns the figures of a record: its metrics, and where it has several
// kinds of operations a line for each, with p50-ms, p95-ms, p99-ms and max-ms.
// With one kind the metrics say that already. A run that failed has no figures
// to compare, nor has one without metrics.
func (r *Record) Lines() []Line {
	if r.Error != "" {
		return nil
	}
	var lines []Line
	if len(r.Metrics) > 0 {
		lines = append(lines, Line{r.Experiment, r.Name, r.Config, r.count(), firsts(r.Metrics)})
	}
	if len(r.Latencies) < 2 {
		return lines
	}
	for i := range r.Latencies {
		d := &r.Latencies[i]
		if d.Count > 0 {
			lines = append(lines, Line{r.Experiment, r.Name, r.Config.With(kindKey, kindValue(d.Kind)), d.Count, d.metrics()})
		}
	}
	return lines
}

// firsts leaves out what Record.Metric does not see: figures of a unit that an
// earlier one has. They would be taken for repetitions.
func firsts(metrics []Metric) []Metric {
	seen := make(map[string]bool, len(metrics))
	var kept []Metric
	for _, m := range metrics {
		if !seen[m.Unit] {
			kept = append(kept, m)
		}
		seen[m.Unit] = true
	}
	return kept
}

// count returns the operations of all kinds, at least 1.
func (r *Record) count() int64 {
	var n int64
	for i := range r.Latencies {
		n += r.Latencies[i].Count
	}
	return max(n, 1)
}

func (d *Distribution) metrics() []Metric {
	return []Metric{
		{milliseconds(d.P50), "p50-ms"}, {milliseconds(d.P95), "p95-ms"},
		{milliseconds(d.P99), "p99-ms"}, {milliseconds(d.Max), "max-ms"},
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// kindValue makes a kind, such as "status=pending", a value of a config.
func kindValue(kind string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '=':
			return ':'
		case special(r):
			return '_'
		}
		return r
	}, kind)
}
