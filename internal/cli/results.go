package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/varvedb/varve/internal/lab"
)

// results are the runs of one experiment, as commands print them when they end.
type results struct {
	rows   []*row
	failed []string // runs that did not end well, and why
	off    []string // why the machine was not to be relied on
}

// row is what the repeats of one configuration came to.
type row struct {
	name    string
	keys    []string // engine=sqlite and so on, in the order of names
	values  map[string][]float64
	units   []string
	digests []string
}

// get returns the value of a key.
func (r *row) get(key string) string {
	for _, k := range r.keys {
		if name, value, _ := strings.Cut(k, "="); name == key {
			return value
		}
	}
	return ""
}

// readResults reads the runs of an experiment. Kinds of operations are left out, which stand in
// the files.
func readResults(dir, experiment string) (*results, error) {
	set, err := lab.OpenSet(dir)
	if err != nil {
		return nil, err
	}
	all, byName := new(results), map[string]*row{}
	err = set.Read(func(r *benchfmt.Result) {
		if r.GetConfig("experiment") != experiment {
			return
		}
		base, parts := r.Name.Parts()
		of := &row{name: string(base), values: map[string][]float64{}}
		for _, p := range parts {
			if p[0] == '/' {
				of.keys = append(of.keys, string(p[1:]))
			}
		}
		if off := r.GetConfig("machine-off"); off != "" && !slices.Contains(all.off, off) {
			all.off = append(all.off, off)
		}
		switch why := r.GetConfig("excluded"); {
		case of.get("kind") != "":
			return
		case why != "":
			all.failed = append(all.failed, fmt.Sprintf("%s, repeat %s: %s", r.Name, r.GetConfig("repeat"), why))
			return
		}
		if had := byName[string(r.Name)]; had != nil {
			of = had
		} else {
			byName[string(r.Name)] = of
			all.rows = append(all.rows, of)
		}
		of.add(r)
	})
	slices.SortFunc(all.rows, func(a, b *row) int {
		return strings.Compare(a.name+strings.Join(a.keys, "/"), b.name+strings.Join(b.keys, "/"))
	})
	return all, err
}

func (r *row) add(of *benchfmt.Result) {
	if digest := of.GetConfig(lab.DigestKey); digest != "" {
		r.digests = append(r.digests, digest)
	}
	for _, v := range lab.Written(of) {
		if r.values[v.Unit] == nil {
			r.units = append(r.units, v.Unit)
		}
		r.values[v.Unit] = append(r.values[v.Unit], v.Value)
	}
}

// summary returns the median of a unit with what it may be: the interval of the order statistics
// from six runs on, the range of fewer.
func (r *row) summary(unit string) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(r.values[unit], &benchmath.DefaultThresholds), 0.95)
}

func (r *row) cell(unit string) string {
	values := r.values[unit]
	if len(values) == 0 {
		return "-"
	}
	s := r.summary(unit)
	if len(values) == 1 {
		return fmt.Sprintf("%.4g", s.Center)
	}
	if len(values) < 6 {
		s.Lo, s.Hi = slices.Min(values), slices.Max(values)
	}
	return fmt.Sprintf("%.4g [%.3g–%.3g]", s.Center, s.Lo, s.Hi)
}

// shown tells which units the tables have: what people ask for first.
func shown(unit string) bool {
	for _, end := range []string{"p50-ms", "p95-ms", "p99-ms", "rows/s", "rel/s", "qps", "ev/s", "op/s", "late", "skipped", "ingest-s", "load-s", "closure-s", "data-MB", "B/ent", "levels-missed", "share-success"} {
		if strings.HasSuffix(unit, end) && unit != "capacity-qps" {
			return true
		}
	}
	return false
}

// print writes a table for each workload, with the median of the repeats and their range.
func (s *results) print(out io.Writer) error {
	tables := map[string][]*row{}
	for _, r := range s.rows {
		tables[r.name] = append(tables[r.name], r)
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if err := printTable(out, name, tables[name]); err != nil {
			return err
		}
	}
	return nil
}

func printTable(out io.Writer, name string, rows []*row) error {
	common := slices.Clone(rows[0].keys)
	var units []string
	least := len(rows[0].values["p50-ms"])
	for _, r := range rows {
		common = slices.DeleteFunc(common, func(k string) bool { return !slices.Contains(r.keys, k) })
		for _, unit := range r.units {
			least = max(least, len(r.values[unit]))
			if shown(unit) && !slices.Contains(units, unit) {
				units = append(units, unit)
			}
		}
	}
	fmt.Fprintf(out, "%s (%s): medians of %d, and their range\n", name, strings.Join(common, ", "), least)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\t"+strings.Join(units, "\t"))
	for _, r := range rows {
		own := slices.DeleteFunc(slices.Clone(r.keys), func(k string) bool { return slices.Contains(common, k) })
		cells := []string{strings.Join(own, ", ")}
		for _, unit := range units {
			cells = append(cells, r.cell(unit))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// failure is the error of runs that did not end well; nil for none.
func (s *results) failure() error {
	if s == nil || len(s.failed) == 0 {
		return nil
	}
	return errors.New(strings.Join(s.failed, "\n"))
}
