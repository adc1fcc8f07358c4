package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// looks is the id of records of the machine alone, which stand between measurements: how
// fast it syncs, copies memory and runs one fixed program, and what others had of it.
const looks = "M1"

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
		t.say(0, [][2]string{{"memory of an engine", budget}, {"Go", list[i].Varve.Go}, {"revision", revision}})
	}
	t.say(0, in.machines(list))
	t.steadiness(slices.DeleteFunc(slices.Clone(in.Results.Records), func(r result.Record) bool { return r.Experiment != looks }))
	t.say(0, [][2]string{{"noise floor", in.noiseText()}})
	t.Rows = slices.DeleteFunc(t.Rows, func(row []Cell) bool { return row[1].Text == "" })
	return t
}

// machines names those that were measured on; of several each with what it has measured.
func (in *Input) machines(list []bench.Manifest) (said [][2]string) {
	var names []string
	for i := range list {
		names = runs.AppendNew(names, list[i].Host.Machine)
	}
	if len(names) == 1 {
		return [][2]string{{"name", names[0]}}
	}
	measured := map[string][]string{}
	for i := range in.Results.Records {
		r := &in.Results.Records[i]
		var m bench.Manifest
		if in.Results.Manifest(r, &m) == nil && r.Experiment != looks {
			measured[m.Host.Machine] = runs.AppendNew(measured[m.Host.Machine], r.Experiment)
		}
	}
	for _, name := range names {
		ids := measured[name]
		slices.SortFunc(ids, natural)
		said = append(said, [2]string{"name", fmt.Sprintf("%s (%s)", name, joinWords(", ", ids...))})
	}
	return said
}

// steadiness has a row for what looks are at, with the medians and ranges of its figures.
func (t *Table) steadiness(records []result.Record) {
	if len(records) == 0 {
		t.say(0, [][2]string{{"looks", "none between measurements: how steady the machine was is not known"}})
		return
	}
	off, values, units := 0, map[string][]float64{}, []string(nil)
	for _, r := range records {
		if slices.ContainsFunc(r.Marks, func(m result.Mark) bool { return strings.HasPrefix(m.Label, "off: ") }) {
			off++
		}
		for _, m := range r.Metrics {
			if m.Unit != "fsyncs" { // is their number
				units, values[m.Unit] = runs.AppendNew(units, m.Unit), append(values[m.Unit], m.Value)
			}
		}
	}
	t.say(0, [][2]string{{"looks", fmt.Sprintf("%d between measurements, %d of them when it was not as before", len(records), off)}})
	subject := func(unit string) string { return strings.SplitN(unit, "-", 2)[0] }
	for _, same := range runs.By(units, subject) {
		var parts []string
		for _, unit := range same {
			v, _ := runs.Median(values[unit])
			of := strings.TrimPrefix(unit, subject(same[0])+"-")
			parts = append(parts, fmt.Sprintf("%s %s (%s to %s)", of, runs.Number(v), runs.Number(slices.Min(values[unit])), runs.Number(slices.Max(values[unit]))))
		}
		t.say(0, [][2]string{{subject(same[0]), strings.Join(parts, ", ")}})
	}
}

// noiseText is how far two measurements of the same are apart, by the units that
// decisions rest on: from the least noisy experiment to the noisiest.
func (in *Input) noiseText() string {
	var parts []string
	ids := slices.Sorted(maps.Keys(in.twice()))
	for _, unit := range []string{"p50-ms", "p99-ms", "rows/s", "ent/s", "qps", "op/s", "ev/s"} {
		type own struct {
			id    string
			noise float64
		}
		var of []own
		for _, id := range ids {
			if f, ok := in.twice()[id][unit]; ok {
				of = append(of, own{id, f})
			}
		}
		if len(of) == 0 {
			continue
		}
		slices.SortStableFunc(of, func(a, b own) int { return cmp.Compare(a.noise, b.noise) })
		text := fmt.Sprintf("%s× (%s)", runs.Number(of[0].noise), of[0].id)
		if last := of[len(of)-1]; len(of) > 1 {
			text += fmt.Sprintf(" to %s× (%s)", runs.Number(last.noise), last.id)
		}
		parts = append(parts, text+" for "+unit)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("not measured: nothing was measured twice in a block; %s× stands in for it", runs.Number(runs.Unmeasured))
	}
	return strings.Join(parts, ", ") + "; a difference inside is not called one (≈)"
}
