package result

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/perf/benchfmt"
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
		err = os.WriteFile(path+".new", text.Bytes(), 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
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
