package result

import (
	"slices"
	"strings"
)

// kindKey is the key that the kind of an operation gets in names of benchmarks.
const kindKey = "kind"

// Lines returns what a record says in lines of the Go benchmark format, each a
// record: its metrics, and where it has several kinds of operations one for each,
// as Distribution.Metrics has them. With one kind the metrics say that
// already. A run that failed has no figures to compare, nor has one without
// metrics.
func (r *Record) Lines() []Record {
	if r.Error != "" {
		return nil
	}
	var lines []Record
	line := Record{Experiment: r.Experiment, Name: r.Name, Config: r.Config, Repeat: r.Repeat, Metrics: firsts(r.Metrics), Latencies: r.Latencies}
	if len(r.Metrics) > 0 {
		lines = append(lines, line)
	}
	for i := range r.Latencies {
		if d := &r.Latencies[i]; len(r.Latencies) > 1 && d.Count > 0 {
			line.Config, line.Metrics, line.Latencies = r.Config.With(kindKey, kindValue(d.Kind)), d.Metrics(""), r.Latencies[i:i+1]
			lines = append(lines, line)
		}
	}
	return lines
}

// Once returns a record without saying which of two measurements of the same it is:
// both have its key then.
func (r *Record) Once() *Record {
	once := *r
	once.Config = r.Config.Without(AAKey)
	return &once
}

// firsts leaves out what Record.Metric does not see: figures of a unit that an
// earlier one has. They would be taken for repetitions.
func firsts(metrics []Metric) []Metric {
	seen := make(map[string]bool, len(metrics))
	return slices.DeleteFunc(slices.Clone(metrics), func(m Metric) bool {
		before := seen[m.Unit]
		seen[m.Unit] = true
		return before
	})
}

// count returns the operations of all kinds, at least 1.
func (r *Record) count() int64 {
	var n int64
	for i := range r.Latencies {
		n += r.Latencies[i].Count
	}
	return max(n, 1)
}

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
