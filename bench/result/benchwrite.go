package result

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/internal/filesync"
)

// experimentKey is the file configuration that tells experiments apart. It is
// the only one: benchstat puts results of different file configurations into
// different tables, and the engines' versions would keep engines from being put
// side by side. Those are in the manifests.
const experimentKey = "experiment"

// WriteBenchFile writes the records of a result set into its BenchFile, whole
// or not at all.
func WriteBenchFile(dir string, r *Results) error {
	path := filepath.Join(dir, BenchFile)
	var text bytes.Buffer
	err := WriteBench(&text, r.Records)
	if err == nil {
		err = filesync.Replace(path, text.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteBench writes records in the Go benchmark format, for benchstat: the units
// with their direction, then a line for each of Record.Lines. Runs that failed
// are comments.
func WriteBench(w io.Writer, records []Record) error {
	out := benchfmt.NewWriter(w)
	if err := writeUnits(out, records); err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		if err := r.check(); err != nil {
			return fmt.Errorf("record %q: %w", r.Key(), err)
		}
		if r.Error != "" {
			why := strings.Join(strings.Fields(r.Error), " ")
			if _, err := fmt.Fprintf(w, "# %s failed: %s\n", r.Key(), why); err != nil {
				return err
			}
		}
		for _, l := range r.Lines() {
			if err := out.Write(l.Benchfmt()); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeUnits writes each unit once, in the order in which it first appears.
func writeUnits(out *benchfmt.Writer, records []Record) error {
	seen := make(map[string]bool)
	for i := range records {
		for _, l := range records[i].Lines() {
			for _, m := range l.Metrics {
				d := Better(m.Unit)
				if seen[m.Unit] || d == Neutral {
					continue
				}
				seen[m.Unit] = true
				key := benchfmt.UnitMetadataKey{Unit: m.Unit, Key: betterKey}
				if err := out.Write(&benchfmt.UnitMetadata{UnitMetadataKey: key, OrigUnit: m.Unit, Value: d.String()}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Benchfmt returns a record, which should be one of Record.Lines, as
// golang.org/x/perf reads it, with the experiment in the file configuration.
func (r *Record) Benchfmt() *benchfmt.Result {
	res := &benchfmt.Result{
		Name: r.benchName(), Iters: int(r.count()),
		Config: []benchfmt.Config{{Key: experimentKey, Value: []byte(r.Experiment), File: true}},
	}
	for _, m := range r.Metrics {
		res.Values = append(res.Values, benchfmt.Value{Value: m.Value, Unit: m.Unit})
	}
	return res
}

// benchName returns the name after "Benchmark". A value that ends like
// "arkiv-13" would be read as arkiv with a GOMAXPROCS of 13; one of 1 is what
// the testing package leaves out, so it says nothing new behind it.
func (r *Record) benchName() benchfmt.Name {
	name := r.Name
	if len(r.Config) > 0 {
		name += "/" + r.Config.String()
	}
	if endsInProcs(name) {
		name += "-1"
	}
	return benchfmt.Name(name)
}

// endsInProcs tells whether the end of a name is read as a GOMAXPROCS.
func endsInProcs(name string) bool {
	_, parts := benchfmt.Name(name).Parts()
	return len(parts) > 0 && parts[len(parts)-1][0] == '-'
}

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
