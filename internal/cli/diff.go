package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/varvedb/varve/internal/report"
)

// benchCmd is what is done with results besides making them.
type benchCmd struct {
	Diff diffCmd `cmd:"" help:"Compare two result sets, or files of go test -bench. The exit code is 1 when something became worse or is gone, and 3 with too few repetitions to tell."`
}

// diffCmd compares row by row by the test of benchstat, and decides by what all rows say together.
type diffCmd struct {
	Old       string  `arg:"" help:"Result set or benchmark file to compare with."`
	New       string  `arg:"" help:"Result set or benchmark file to judge."`
	Threshold float64 `min:"0" max:"1000000" help:"Change of a median, in percent of the smaller one, that counts when it is significant." default:"5"`
	Alpha     float64 `above:"0" max:"0.5" help:"False discovery rate over all rows: the part of the reported changes that may be chance." default:"0.05"`
	Filter    string  `help:"What to compare, as benchstat -filter has it, such as '/engine:sqlite .unit:p99-ms'; of units those that have a good direction." default:"*"`
	JSON      bool    `help:"Print the comparison as JSON."`
}

// Help says what the exit codes mean.
func (c *diffCmd) Help() string {
	return `Exit codes: 0 nothing became worse, 1 something became worse, failed or is gone, 2 wrong usage, 3 nothing became worse, but there are too few repetitions to tell. Compare fewer rows (--filter) or repeat more often: 6 times a side are enough for 23 rows, 8 for 321, 10 for 4,618.

A row is worse when its change is significant (Mann-Whitney U) at the false discovery rate over all rows, and beyond --threshold.`
}

// Run compares. Input that cannot be compared is wrong usage, so that a gate can
// tell it from a regression by the exit code.
func (c *diffCmd) Run(e *env) error {
	filter, err := benchproc.NewFilter(c.Filter)
	if err != nil {
		return usageError{fmt.Errorf("--filter: %w", err)}
	}
	var sides [2]*report.Set
	for i, path := range []string{c.Old, c.New} {
		if sides[i], err = loadSet(e, path); err != nil {
			return err
		}
		unwanted := func(l *benchfmt.Result) bool { some, err := filter.Apply(l); return err != nil || !some }
		sides[i].Lines, sides[i].Excluded = slices.DeleteFunc(sides[i].Lines, unwanted), slices.DeleteFunc(sides[i].Excluded, unwanted)
	}
	d := c.compare(sides[0], sides[1])
	if len(d.Rows) == 0 {
		return usageError{fmt.Errorf("%s and %s have nothing in common to compare; give results of the same experiment", c.Old, c.New)}
	}
	if c.JSON {
		err = printJSON(e.stdout, d)
	} else {
		err = d.print(e.stdout)
	}
	switch bad := d.count(verdictWorse) + len(d.Gone); {
	case err != nil:
		return err
	case bad > 0:
		return fmt.Errorf("%d of %d rows became worse, failed or are gone", bad, len(d.Rows)+len(d.Gone))
	case d.count(verdictUnknown) > 0:
		fmt.Fprintf(e.stderr, "varve: bench diff: %s\n", d.tooFew())
		return exitStatus(ExitNotChecked)
	}
	return nil
}

// difference is all that a comparison found.
type difference struct {
	Level float64   `json:"level"` // p-value that the false discovery rate leaves for a row
	Need  int       `json:"need"`  // repetitions a side with which a row can be significant
	Rows  []diffRow `json:"rows"`
	Gone  []string  `json:"gone"` // benchmarks of old that new does not have, or that failed
}

// diffRow compares one unit of one benchmark.
type diffRow struct {
	Unit    string  `json:"unit"`
	Name    string  `json:"name"`
	Old     float64 `json:"old"` // medians
	New     float64 `json:"new"`
	P       float64 `json:"p"`
	N       [2]int  `json:"n"`
	Verdict string  `json:"verdict"`
	better  int     // 1: higher is better
}

// Verdicts on a row. Unknown means that no difference, however large, would be significant.
const (
	verdictWorse   = "worse"
	verdictBetter  = "better"
	verdictSame    = "same"
	verdictUnknown = "too few"
)

// unitRow names one unit of one benchmark.
type unitRow struct{ unit, name string }

// gather returns the values of a side, its rows in order, and its benchmarks.
func gather(s *report.Set) (values map[unitRow][]float64, rows []unitRow, names map[string]bool) {
	values, names = make(map[unitRow][]float64), make(map[string]bool)
	for _, l := range s.Lines {
		name := strings.TrimSpace(cmp.Or(l.GetConfig("experiment"), l.GetConfig("pkg")) + " " + string(l.Name.Full()))
		names[name] = true
		for _, v := range l.Values {
			at := unitRow{v.Unit, name}
			if better(s, v.Unit) == 0 {
				continue
			}
			if values[at] == nil {
				rows = append(rows, at)
			}
			values[at] = append(values[at], v.Value)
		}
	}
	slices.SortStableFunc(rows, func(a, b unitRow) int { return strings.Compare(a.unit, b.unit) })
	return values, rows, names
}

// better returns 1 for units whose higher values are good, -1 for lower ones, 0 when it is not known.
func better(s *report.Set, unit string) int {
	switch stated := s.Units.Get(unit, "better"); {
	case stated != nil && stated.Value == "higher":
		return 1
	case stated != nil:
		return -1
	case strings.HasSuffix(unit, "/s") || unit == "qps":
		return 1
	case strings.HasSuffix(unit, "/op") || strings.HasSuffix(unit, "-ms"):
		return -1
	}
	return 0
}

func (c *diffCmd) compare(before, after *report.Set) *difference {
	was, rows, old := gather(before)
	is, _, now := gather(after)
	d := &difference{Rows: []diffRow{}, Gone: []string{}}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if !now[name] {
			d.Gone = append(d.Gone, name)
		}
	}
	for _, at := range rows {
		if is[at] == nil {
			continue
		}
		a, b := report.NewFigure(was[at], false), report.NewFigure(is[at], false)
		r := diffRow{Unit: at.unit, Name: at.name, Old: a.Center, New: b.Center, N: [2]int{a.N, b.N}, better: better(before, at.unit)}
		r.P = report.Test(a, b).P
		d.Rows = append(d.Rows, r)
	}
	if len(d.Rows) > 0 {
		d.judge(c)
	}
	return d
}

// judge gives all rows their verdicts at the level of Benjamini and Hochberg: that of the largest
// p-value that is not above its share of alpha, or that one more row would have had to reach.
func (d *difference) judge(c *diffCmd) {
	ps := make([]float64, len(d.Rows))
	for i, r := range d.Rows {
		ps[i] = r.P
	}
	slices.Sort(ps)
	part, found := c.Alpha/float64(len(ps)), len(ps)
	for found > 0 && ps[found-1] > part*float64(found) {
		found--
	}
	d.Level = part * float64(min(found+1, len(ps)))
	for d.Need = 2; leastP(d.Need, d.Need) > d.Level; d.Need++ {
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		change := 100 * math.Abs(r.New-r.Old) / min(math.Abs(r.New), math.Abs(r.Old))
		switch {
		case leastP(r.N[0], r.N[1]) > d.Level:
			r.Verdict = verdictUnknown
		case r.P > d.Level || r.Old == r.New || change <= c.Threshold:
			r.Verdict = verdictSame
		case r.New > r.Old == (r.better > 0):
			r.Verdict = verdictBetter
		default:
			r.Verdict = verdictWorse
		}
	}
}

// leastP is the p-value of samples that do not overlap, 2 of all ways to choose one from both.
func leastP(n1, n2 int) float64 {
	return min(1, 2*math.Exp(-combin.LogGeneralizedBinomial(float64(n1+n2), float64(n1))))
}

func (d *difference) count(verdict string) (n int) {
	for _, r := range d.Rows {
		if r.Verdict == verdict {
			n++
		}
	}
	return n
}

func (d *difference) tooFew() string {
	return fmt.Sprintf("%d of %d rows have too few repetitions to tell, repeat both sides %d times, or compare less", d.count(verdictUnknown), len(d.Rows), d.Need)
}

// change is the part of the old median by which the new one differs, where there
// is such a part.
func (r *diffRow) change() string {
	switch {
	case r.New == r.Old:
		return "+0.0%"
	case r.Old == 0:
		return "from 0"
	}
	return fmt.Sprintf("%+.1f%%", 100*(r.New-r.Old)/math.Abs(r.Old))
}

func (d *difference) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for i, r := range d.Rows {
		if i == 0 || d.Rows[i-1].Unit != r.Unit {
			fmt.Fprintf(out, "%s\told\tnew\tchange\n", r.Unit)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s (%s)\t%s\n", r.Name, report.Number(r.Old), report.Number(r.New), r.change(),
			benchmath.Comparison{P: r.P, N1: r.N[0], N2: r.N[1]}, strings.TrimPrefix(r.Verdict, verdictSame))
	}
	for _, name := range d.Gone {
		fmt.Fprintf(out, "gone or failed: %s\n", name)
	}
	if d.count(verdictUnknown) > 0 {
		fmt.Fprintln(out, d.tooFew())
	}
	fmt.Fprintf(out, "%d compared, %d worse, %d better, %d gone or failed (p ≤ %.2g)\n", len(d.Rows), d.count(verdictWorse), d.count(verdictBetter), len(d.Gone), d.Level)
	return out.Flush()
}
