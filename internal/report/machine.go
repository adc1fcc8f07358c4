package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// probe is the name of records of the machine alone, which stand between blocks of
// measurements: how fast it syncs, copies memory and runs one fixed program.
const probe = "Probe"

// machine is what was measured on, how steady it was, and how far measurements of the
// same are apart. Of several machines each has its values.
func machine(in *Input, list []bench.Manifest) *Table {
	t := host(list)
	t.Columns[0].Head = "machine"
	for i := range list {
		budget := ""
		if list[i].Memory.Bytes > 0 {
			budget = fmt.Sprintf("%.4g MiB, kept by %s", float64(list[i].Memory.Bytes)/(1<<20), list[i].Memory.How)
		}
		revision, known := list[i].Varve.Name()
		if revision = runs.Short(revision); !known {
			revision += " with changes"
		}
		t.say(0, [][2]string{{"name", list[i].Host.Machine}, {"memory of an engine", budget}, {"Go", list[i].Varve.Go}, {"revision", revision}})
	}
	probes := slices.DeleteFunc(slices.Clone(in.Results.Records), func(r result.Record) bool { return r.Name != probe })
	var units []string
	for _, r := range probes {
		for _, m := range r.Metrics {
			units = runs.AppendNew(units, m.Unit)
		}
	}
	for _, unit := range units {
		var values []float64
		for i := range probes {
			if v, ok := probes[i].Metric(unit); ok && probes[i].Error == "" {
				values = append(values, v)
			}
		}
		if v, ok := runs.Median(values); ok {
			t.say(0, [][2]string{{"probe, " + unit, fmt.Sprintf("%s (%s to %s in %d probes, %s apart)", runs.Number(v),
				runs.Number(slices.Min(values)), runs.Number(slices.Max(values)), len(values), percent(slices.Max(values)/slices.Min(values)-1))}})
		}
	}
	if len(units) == 0 {
		t.say(0, [][2]string{{"probe", "none beside the blocks: how steady the machine was is not known"}})
	}
	t.say(0, [][2]string{{"noise floor", in.noiseText()}})
	t.Rows = slices.DeleteFunc(t.Rows, func(row []Cell) bool { return row[1].Text == "" })
	return t
}

// noiseText is how far two measurements of the same are apart, by the units that
// decisions rest on.
func (in *Input) noiseText() string {
	var parts []string
	for _, unit := range []string{"p50-ms", "p99-ms", "rows/s", "ent/s", "qps", "op/s", "ev/s"} {
		if f, ok := in.floor()[unit]; ok {
			parts = append(parts, fmt.Sprintf("%s× for %s", runs.Number(f), unit))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("not measured: nothing was measured twice in a block; %s× stands in for it", runs.Number(runs.Unmeasured))
	}
	return strings.Join(parts, ", ") + "; a difference inside is not called one (≈)"
}
