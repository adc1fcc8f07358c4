package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchproc"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
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
	Threshold float64  `help:"Change of a median, in percent of the smaller one, that is a regression when it is significant and beyond the noise." default:"5"`
	Alpha     float64  `help:"Part of the changes found that may be none: the false discovery rate over all rows." default:"0.05"`
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
		`measurements of the same (aa=1 and aa=2 in names) in that unit, else the 95 % interval of the old median.`
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
	before, err := readSide(e, c.Old, filter)
	if err != nil {
		return err
	}
	after, err := readSide(e, c.New, filter)
	if err != nil {
		return err
	}
	d := c.compare(before, after)
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
	Name    string   `json:"name"`
	Old     diffSide `json:"old"`
	New     diffSide `json:"new"`
	Delta   *float64 `json:"delta_percent"` // of the medians; null when old is 0 and new is not
	P       float64  `json:"p"`
	Noise   float64  `json:"noise_percent"` // change that is within it says nothing; at least the threshold
	Verdict string   `json:"verdict"`       // worse, better, changed, same or unknown

	Significant bool `json:"significant"`
	Within      bool `json:"within_noise"`
	Need        int  `json:"need,omitempty"` // repetitions a side of an unknown row; 0 when 100 are too few

	compared stat.Comparison
	old      []float64
	both     []float64 // old, and new brought to its median: what is known of the noise
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

func (c *diffCmd) compare(before, after *result.Results) *difference {
	d := &difference{
		Threshold: c.Threshold, Alpha: c.Alpha,
		Units: []unitTable{}, Failed: []failure{}, OnlyOld: []string{}, OnlyNew: []string{},
	}
	samples := gather(before, after)
	var ps []float64
	for _, unit := range samples.units {
		if len(c.Units) > 0 && !slices.Contains(c.Units, unit) {
			continue
		}
		direction := before.Direction(unit)
		if stated, ok := after.Units[unit]; ok {
			direction = stated
		}
		t := unitTable{Unit: unit, Better: direction.String()}
		for _, name := range samples.names[0] {
			if p := samples.values[unitName{unit, name}]; p != nil && len(p[0][0]) > 0 && len(p[1][0]) > 0 {
				r := newRow(name, p[0][0], p[1][0])
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
	d.judge(samples)
	d.addMissing(samples, before, after)
	return d
}

func newRow(name string, before, after []float64) diffRow {
	compared := stat.Compare(before, after)
	r := diffRow{
		Name: name, Old: side(compared.Old), New: side(compared.New), P: compared.P,
		compared: compared, old: before, both: slices.Clone(before),
	}
	for _, v := range after {
		if r.New.Median != 0 {
			r.both = append(r.both, v*r.Old.Median/r.New.Median)
		}
	}
	if was, is := r.Old.Median, r.New.Median; was != 0 || is == 0 {
		percent := 0.0
		if is != was {
			percent = 100 * (is - was) / math.Abs(was)
		}
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

// judge gives all rows their verdicts.
func (d *difference) judge(samples *samples) {
	doubling := stat.NewDoubling(d.Level)
	for i := range d.Units {
		t := &d.Units[i]
		again, twice := samples.again(t.Unit)
		for j := range t.Rows {
			r := &t.Rows[j]
			noise := again
			if !twice {
				noise = spread(r.old)
			}
			r.Noise = max(d.Threshold, 100*noise)
			change := 100 * stat.Change(r.compared.Old.Median, r.compared.New.Median)
			r.Significant, r.Within = r.P <= d.Level, change <= r.Noise
			r.Verdict = r.verdict(t.Better)
			if r.Verdict == verdictSame && t.Better != result.Neutral.String() && doubling.Seen(r.both, noise, r.Old.N, r.New.N) < stat.Likely {
				r.Verdict, r.Need = verdictUnknown, doubling.Need(r.both, noise)
			}
			d.count(r)
		}
		if t.Better != result.Neutral.String() {
			t.Geomean = geomean(t.Rows)
		}
	}
}

func (r *diffRow) verdict(better string) string {
	switch up := r.compared.New.Median > r.compared.Old.Median; {
	case !r.Significant || r.Within:
		return verdictSame
	case better == result.Neutral.String():
		return verdictChanged
	case up == (better == result.Higher.String()):
		return verdictBetter
	}
	return verdictWorse
}

func (d *difference) count(r *diffRow) {
	switch r.Verdict {
	case verdictWorse:
		d.Regressions++
	case verdictUnknown:
		d.Unknown++
		d.Need = max(d.Need, r.Need)
		if r.Need == 0 {
			d.TooNoisy++
		}
	}
}

// spread is the noise of a sample: the interval of its median, or the range of
// one that is too small for it, as a part of the median; 0 around 0.
func spread(values []float64) float64 {
	s := stat.Summarize(values)
	if !s.Bounded() {
		s.Low, s.High = slices.Min(values), slices.Max(values)
	}
	if s.Median == 0 {
		return 0
	}
	return s.Spread()
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
