package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
)

// benchCmd is what is done with results besides making them.
type benchCmd struct {
	Diff diffCmd `cmd:"" help:"Compare two result sets, or files of go test -bench; exit code 1 when something became worse."`
}

// diffCmd compares by the statistics of benchstat and decides by them.
type diffCmd struct {
	Old       string   `arg:"" help:"Result set or benchmark file to compare with."`
	New       string   `arg:"" help:"Result set or benchmark file to judge."`
	Threshold float64  `help:"Change of a median, in percent, that is a regression when it is significant." default:"5"`
	Alpha     float64  `help:"p-value below which a change is significant." default:"0.05"`
	Units     []string `help:"Units to compare, such as p99-ms; all when none is given."`
	JSON      bool     `help:"Print the comparison as JSON."`
}

// errWorse makes exit code 1 of regressions.
var errWorse = errors.New("became worse")

// Run compares. Input that cannot be compared is wrong usage, so that a gate can
// tell it from a regression by the exit code.
func (c *diffCmd) Run(e *env) error {
	if c.Threshold < 0 || c.Alpha <= 0 || c.Alpha >= 1 {
		return usageError{errors.New("bench diff: --threshold must not be negative, --alpha must be between 0 and 1")}
	}
	before, err := result.Load(c.Old)
	if err != nil {
		return usageError{fmt.Errorf("bench diff: %w", err)}
	}
	after, err := result.Load(c.New)
	if err != nil {
		return usageError{fmt.Errorf("bench diff: %w", err)}
	}
	for _, w := range slices.Concat(before.Warnings, after.Warnings) {
		fmt.Fprintln(e.stderr, "warning:", w)
	}
	d := c.compare(before, after)
	if d.empty() {
		return usageError{fmt.Errorf("bench diff: %s and %s have nothing in common to compare; names are made of experiment, workload and configuration", c.Old, c.New)}
	}
	if c.JSON {
		err = printJSON(e.stdout, d)
	} else {
		err = d.print(e.stdout)
	}
	if err == nil && d.Regressions > 0 {
		err = fmt.Errorf("bench diff: %d of %d %w", d.Regressions, d.Compared, errWorse)
	}
	return err
}

// difference is all that a comparison found.
type difference struct {
	Threshold   float64     `json:"threshold_percent"`
	Alpha       float64     `json:"alpha"`
	Compared    int         `json:"compared"` // rows, and runs that fail now and did not
	Regressions int         `json:"regressions"`
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
	Name    string   `json:"name"`
	Old     diffSide `json:"old"`
	New     diffSide `json:"new"`
	Delta   *float64 `json:"delta_percent"` // of the medians; null when old is 0 and new is not
	P       float64  `json:"p"`
	Verdict string   `json:"verdict"` // worse, better, changed, same or unknown

	Significant bool   `json:"significant"`
	Warning     string `json:"warning,omitempty"`
}

// diffSide is a sample.
type diffSide struct {
	Median float64  `json:"median"`
	Low    *float64 `json:"low"` // of the 95 % interval; null when there are too few samples for one
	High   *float64 `json:"high"`
	N      int      `json:"n"`
}

// failure is a run that does not end well any more.
type failure struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// Verdicts on a row. Worse and better are significant and beyond the threshold;
// changed is so for a unit that is neither; unknown means that the samples are
// too few to tell anything.
const (
	verdictWorse   = "worse"
	verdictBetter  = "better"
	verdictChanged = "changed"
	verdictSame    = "same"
	verdictUnknown = "unknown"
)

func (d *difference) empty() bool { return d.Compared == 0 }

func (c *diffCmd) compare(before, after *result.Results) *difference {
	was, is := newSeries(before), newSeries(after)
	d := &difference{
		Threshold: c.Threshold, Alpha: c.Alpha,
		Units: []unitTable{}, Failed: []failure{}, OnlyOld: []string{}, OnlyNew: []string{},
	}
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
			a, b := was.values[name][unit], is.values[name][unit]
			if len(a) > 0 && len(b) > 0 {
				t.Rows = append(t.Rows, c.row(name, a, b, direction))
			}
		}
		if len(t.Rows) > 0 {
			if direction != result.Neutral {
				t.Geomean = geomean(t.Rows)
			}
			d.addUnit(t)
		}
	}
	d.addMissing(was, is)
	return d
}

func (d *difference) addUnit(t unitTable) {
	d.Units = append(d.Units, t)
	d.Compared += len(t.Rows)
	for _, r := range t.Rows {
		if r.Verdict == verdictWorse {
			d.Regressions++
		}
	}
}

// addMissing lists what one side does not have. What fails now and did not is a
// regression; what was not run is none, but nobody should overlook it.
func (d *difference) addMissing(was, is *series) {
	for _, run := range is.failed() {
		if was.runs[run] == nil && !was.tried(is.runs[run]) {
			continue // this experiment is new on this engine
		}
		if was.runs[run] == nil || was.runs[run].good {
			d.Failed = append(d.Failed, failure{run, is.runs[run].err})
			d.Compared++
			d.Regressions++
		}
	}
	for _, name := range was.names {
		if r := is.runs[was.run[name]]; is.values[name] == nil && (r == nil || r.good) {
			d.OnlyOld = append(d.OnlyOld, name)
		}
	}
	for _, name := range is.names {
		if was.values[name] == nil {
			d.OnlyNew = append(d.OnlyNew, name)
		}
	}
}

func (c *diffCmd) row(name string, before, after []float64, direction result.Direction) diffRow {
	compared := stat.Compare(before, after, c.Alpha)
	r := diffRow{
		Name: name, Significant: compared.Significant(), Old: side(compared.Old), New: side(compared.New), P: compared.P,
		Verdict: c.verdict(compared, direction), Warning: compared.Warning(),
	}
	if !math.IsNaN(compared.Delta) {
		percent := 100 * compared.Delta
		r.Delta = &percent
	}
	return r
}

func side(s stat.Summary) diffSide {
	d := diffSide{Median: s.Median, N: s.N}
	if s.Bounded() {
		d.Low, d.High = &s.Low, &s.High
	}
	return d
}

func (c *diffCmd) verdict(compared stat.Comparison, direction result.Direction) string {
	change := compared.New.Median - compared.Old.Median
	switch {
	case compared.Need > 0:
		return verdictUnknown
	// A change from 0 has no percentage and is beyond every threshold.
	case !compared.Significant() || change == 0 || 100*math.Abs(compared.Delta) <= c.Threshold:
		return verdictSame
	case direction == result.Neutral:
		return verdictChanged
	case (change > 0) == (direction == result.Higher):
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
	mean := stat.GeoMean(ratios)
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return nil
	}
	return &mean
}
