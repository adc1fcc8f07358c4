package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchproc"
	gonum "gonum.org/v1/gonum/stat"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// benchCmd is what is done with results besides making them.
type benchCmd struct {
	Diff diffCmd `cmd:"" help:"Compare two result sets, or files of go test -bench; exit code 1 when something became worse, 3 when too few repetitions could tell."`
}

// diffCmd compares by the test of benchstat and decides by what many such tests
// can say together.
type diffCmd struct {
	Old       string   `arg:"" help:"Result set or benchmark file to compare with."`
	New       string   `arg:"" help:"Result set or benchmark file to judge."`
	Threshold float64  `min:"0" max:"1000000" help:"Change of a median, in percent of the smaller one, that is a regression when it is significant and beyond the noise." default:"5"`
	Alpha     float64  `above:"0" max:"1" help:"Part of the changes found that may be none: the false discovery rate over all rows." default:"0.05"`
	Units     []string `help:"Units to compare, such as p99-ms; all when none is given."`
	Filter    string   `help:"Configurations to compare, as benchstat -filter has it, such as '/engine:sqlite'." default:"*"`
	JSON      bool     `help:"Print the comparison as JSON."`
}

// Help says what the exit codes mean.
func (c *diffCmd) Help() string {
	return `Exit codes: 0 nothing became worse and a doubling would have been seen, 1 something became worse, 2 wrong usage, ` +
		`3 nothing became worse, but some rows have too few repetitions to tell a doubling; what is printed says how many are needed. ` +
		`Compare fewer rows (--units, --filter) or repeat more often: for 200 rows 10 times a side with 10 % noise, 24 times with 30 %.

A row is worse when its change is significant at the false discovery rate, beyond --threshold and beyond the noise: the largest difference of two ` +
		`measurements of the same in a block (the second one with aa=2 in its name) in that unit, else the 95 % interval of the old median.`
}

// errWorse makes exit code 1 of regressions.
var errWorse = errors.New("became worse")

// Run compares. Input that cannot be compared is wrong usage, so that a gate can
// tell it from a regression by the exit code.
func (c *diffCmd) Run(e *env) error {
	if c.Threshold < 0 || c.Alpha <= 0 || c.Alpha >= 1 {
		return usageError{errors.New("bench diff: --threshold must not be negative, --alpha must be between 0 and 1")}
	}
	filter, err := benchproc.NewFilter(c.Filter)
	if err != nil || strings.Contains(c.Filter, ".unit") {
		return usageError{errors.Join(errors.New("bench diff: --filter is of configurations, units are chosen by --units"), err)}
	}
	var sides [2]*result.Results
	for i, path := range []string{c.Old, c.New} {
		if sides[i], err = readSide(e, path, filter); err != nil {
			return err
		}
	}
	d := c.compare(sides[0], sides[1])
	if d.Compared == 0 {
		return usageError{fmt.Errorf("bench diff: %s and %s have nothing in common to compare; names are made of experiment, workload and configuration", c.Old, c.New)}
	}
	if c.JSON {
		err = printJSON(e.stdout, d)
	} else {
		err = d.print(e.stdout)
	}
	switch {
	case err != nil:
		return err
	case d.Regressions > 0:
		return fmt.Errorf("bench diff: %d of %d %w", d.Regressions, d.Compared, errWorse)
	case d.Unknown > 0:
		fmt.Fprintf(e.stderr, "varve: bench diff: %s\n", d.tooFew())
		return exitStatus(ExitNotChecked)
	}
	return nil
}

// readSide reads a side, without the configurations that are not asked for.
func readSide(e *env, path string, filter *benchproc.Filter) (*result.Results, error) {
	r, err := result.Load(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("bench diff: %w", err)}
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(e.stderr, "warning:", w)
	}
	r.Records = slices.DeleteFunc(r.Records, func(rec result.Record) bool {
		match, err := filter.Match(rec.Benchfmt())
		return err != nil || !match.All()
	})
	return r, nil
}

// difference is all that a comparison found.
type difference struct {
	Threshold   float64     `json:"threshold_percent"`
	Alpha       float64     `json:"alpha"`
	Level       float64     `json:"level"`    // p-value that alpha leaves for a row
	Compared    int         `json:"compared"` // rows, and runs that fail now and did not
	Regressions int         `json:"regressions"`
	Unknown     int         `json:"unknown"`   // rows in which a doubling would not be seen
	Need        int         `json:"need"`      // repetitions a side for it
	TooNoisy    int         `json:"too_noisy"` // of the unknown ones, even for 100 repetitions
	Units       []unitTable `json:"units"`
	Failed      []failure   `json:"failed"` // in new and not in old
	OnlyOld     []string    `json:"only_old"`
	OnlyNew     []string    `json:"only_new"`
}

// unitTable is the comparison of one metric.
type unitTable struct {
	Unit   string    `json:"unit"`
	Better string    `json:"better"` // lower, higher or neutral
	Rows   []diffRow `json:"rows"`

	// Geomean is the geometric mean of new over old, where all are positive.
	Geomean *float64 `json:"geomean_ratio,omitempty"`
}

// diffRow compares one configuration.
type diffRow struct {
	Name string `json:"name"`
	stat.Comparison
	Delta   *float64 `json:"delta_percent"` // of the medians; null when old is 0 and new is not
	Noise   float64  `json:"noise_percent"` // change that is within it says nothing; at least the threshold
	Verdict string   `json:"verdict"`       // worse, better, changed, same or unknown

	Significant bool `json:"significant"`
	Within      bool `json:"within_noise"`
	Need        int  `json:"need,omitempty"` // repetitions a side of an unknown row; 0 when 100 are too few

	both []float64 // old, and new brought to its median: what is known of the noise
}

// failure is a run that does not end well any more.
type failure struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// Verdicts on a row. Worse and better are significant and beyond the noise;
// changed is so for a unit that is neither; unknown means that the samples are
// too few to tell a doubling.
const (
	verdictWorse   = "worse"
	verdictBetter  = "better"
	verdictChanged = "changed"
	verdictSame    = "same"
	verdictUnknown = "unknown"
)

// samples are the figures of a result set by unit and name, both in order. Second
// measurements of the same are not among them, and tell the noise.
type samples struct {
	units, names []string
	values       map[unitName][]float64
	noise        map[string]float64
}

type unitName struct{ unit, name string }

func gather(set *result.Results) *samples {
	var lines []result.Record
	for i := range set.Records {
		lines = append(lines, set.Records[i].Lines()...)
	}
	s := &samples{values: make(map[unitName][]float64), noise: stat.Noise(lines)}
	for i := range lines {
		name := lines[i].Once().Key()
		s.names = runs.AppendNew(s.names, name)
		for _, m := range lines[i].Metrics {
			s.units = runs.AppendNew(s.units, m.Unit)
			if at := (unitName{m.Unit, name}); !lines[i].Again() {
				s.values[at] = append(s.values[at], m.Value)
			}
		}
	}
	return s
}

func (c *diffCmd) compare(before, after *result.Results) *difference {
	d := &difference{Threshold: c.Threshold, Alpha: c.Alpha, Units: []unitTable{}, Failed: []failure{}}
	was, is := gather(before), gather(after)
	var ps []float64
	for _, unit := range was.units {
		if len(c.Units) > 0 && !slices.Contains(c.Units, unit) {
			continue
		}
		direction := before.Direction(unit)
		if stated, ok := after.Units[unit]; ok {
			direction = stated
		}
		t := unitTable{Unit: unit, Better: direction.String()}
		for _, name := range was.names {
			at := unitName{unit, name}
			if len(was.values[at]) > 0 && len(is.values[at]) > 0 {
				r := newRow(name, was.values[at], is.values[at])
				t.Rows, ps = append(t.Rows, r), append(ps, r.P)
			}
		}
		if len(t.Rows) > 0 {
			d.Units = append(d.Units, t)
		}
	}
	d.Compared = len(ps)
	if len(ps) > 0 {
		d.Level = stat.FalseDiscovery(ps, c.Alpha)
	}
	d.judge(was, is)
	d.addFailed(before, after)
	d.addMissing(was, is, after)
	return d
}

func newRow(name string, before, after []float64) diffRow {
	r := diffRow{Name: name, Comparison: stat.Compare(before, after), both: slices.Clone(before)}
	was, is := r.Old.Median, r.New.Median
	for _, v := range after {
		if is != 0 {
			r.both = append(r.both, v*was/is)
		}
	}
	if percent := 100 * (is - was) / math.Abs(was); was != 0 {
		r.Delta = &percent
	} else if is == 0 {
		r.Delta = &is
	}
	return r
}

// spread is the noise of the old sample: the interval of its median, or the range of
// one that is too small for it, as a part of the median; 0 around 0.
func (r *diffRow) spread() float64 {
	s, values := r.Old, r.both[:r.Old.N]
	if !s.Bounded() {
		s.Low, s.High = slices.Min(values), slices.Max(values)
	}
	if s.Median == 0 {
		return 0
	}
	return s.Spread()
}

// judge gives all rows their verdicts.
func (d *difference) judge(was, is *samples) {
	doubling := stat.NewDoubling(d.Level)
	for i := range d.Units {
		t := &d.Units[i]
		a, before := was.noise[t.Unit]
		b, after := is.noise[t.Unit]
		neutral := t.Better == result.Neutral.String()
		for j := range t.Rows {
			r := &t.Rows[j]
			noise := max(a, b)
			if !before && !after {
				noise = r.spread()
			}
			r.Noise = max(d.Threshold, 100*noise)
			r.Significant, r.Within = r.P <= d.Level, 100*stat.Change(r.Old.Median, r.New.Median) <= r.Noise
			r.Verdict = r.verdict(t.Better)
			switch {
			case r.Verdict == verdictWorse:
				d.Regressions++
			case r.Verdict == verdictSame && !neutral && doubling.Seen(r.both, noise, r.Old.N, r.New.N) < stat.Likely:
				r.Verdict, r.Need = verdictUnknown, doubling.Need(r.both, noise)
				d.Unknown++
				d.Need = max(d.Need, r.Need)
				if r.Need == 0 {
					d.TooNoisy++
				}
			}
		}
		if !neutral {
			t.Geomean = geomean(t.Rows)
		}
	}
}

func (r *diffRow) verdict(better string) string {
	switch up := r.New.Median > r.Old.Median; {
	case !r.Significant || r.Within:
		return verdictSame
	case better == result.Neutral.String():
		return verdictChanged
	case up == (better == result.Higher.String()):
		return verdictBetter
	}
	return verdictWorse
}

// geomean returns the geometric mean of the ratios of medians, nil when one has
// none.
func geomean(rows []diffRow) *float64 {
	ratios := make([]float64, len(rows))
	for i, r := range rows {
		ratios[i] = r.New.Median / r.Old.Median
	}
	mean := gonum.GeometricMean(ratios, nil)
	if !(mean > 0) || math.IsInf(mean, 0) {
		return nil
	}
	return &mean
}

// addFailed lists what fails now, which is a regression where the same ended well, or
// where that is new another configuration of its experiment and engine did.
func (d *difference) addFailed(before, after *result.Results) {
	was := runs.Gather(before.Records)
	for _, g := range runs.Where(runs.Gather(after.Records), (*runs.Group).Failed) {
		key := g.Key()
		alike := runs.Where(was, func(w *runs.Group) bool { return w.Key() == key })
		if len(alike) == 0 {
			alike = runs.Where(was, func(w *runs.Group) bool {
				return w.Experiment == g.Experiment && w.Get("engine") == g.Get("engine")
			})
		}
		if slices.ContainsFunc(alike, func(w *runs.Group) bool { return !w.Failed() }) {
			last := g.Records[len(g.Records)-1]
			d.Failed = append(d.Failed, failure{key, strings.Join(strings.Fields(last.Error), " ")})
			d.Compared++
			d.Regressions++
		}
	}
}

// addMissing lists what one side does not have: no regression, but nobody should
// overlook it. What failed is no longer there for another reason.
func (d *difference) addMissing(was, is *samples, after *result.Results) {
	failed := func(name string) bool {
		return slices.ContainsFunc(after.Records, func(r result.Record) bool {
			return r.Error != "" && strings.HasPrefix(name+"/", r.Once().Key()+"/")
		})
	}
	without := func(names, others []string) []string {
		return slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return slices.Contains(others, name) })
	}
	d.OnlyOld = slices.DeleteFunc(without(was.names, is.names), failed)
	d.OnlyNew = without(is.names, was.names)
}
