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
	"golang.org/x/perf/benchproc"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/varvedb/varve/internal/report"
)

// benchCmd has the commands that process results without measuring.
type benchCmd struct {
	Diff diffCmd `cmd:"" help:"Compare two result sets, or files of go test -bench. The exit code is 1 when something became worse or is gone, and 3 with too few repetitions to tell."`
}

// diffCmd compares each row by a test of the ratios, and decides over all rows
// together.
type diffCmd struct {
	Old       string  `arg:"" help:"Result set or benchmark file to compare with."`
	New       string  `arg:"" help:"Result set or benchmark file to judge."`
	Threshold float64 `min:"0" max:"1000000" help:"Change of a median, in percent of the smaller one, that counts when it is significant." default:"5"`
	Alpha     float64 `above:"0" max:"0.5" help:"False discovery rate over all rows: the part of the reported changes that may be chance." default:"0.05"`
	Filter    string  `help:"Results to compare, in the syntax of benchstat -filter, such as '/engine:sqlite .unit:p99-ms'. Units without a better direction are left out." default:"*"`
	JSON      bool    `help:"Print the comparison as JSON."`
}

// Help describes the exit codes.
func (c *diffCmd) Help() string {
	return `Exit codes: 0 nothing became worse, 1 something became worse, failed or is gone, 2 wrong usage, 3 nothing became worse, but there are too few repetitions to tell. Compare fewer rows (--filter) or repeat more often: 6 times a side are enough for 23 rows, 8 for 321.

A row is worse when its change is significant (a permutation test within each sitting) at the false discovery rate over all rows, and beyond --threshold. Sittings that both have are compared each with itself. Else the sittings of a host are compared, and what changed between them counts too. Hosts, sizes and experiments are never compared with each other.`
}

// Run compares. Incomparable input is a usage error, so that a CI gate can
// distinguish it from a regression by the exit code.
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
	switch {
	case len(d.Rows) == 0 && len(d.Hosts) > 0:
		return usageError{fmt.Errorf("%s and %s have no host in common, and times of two hosts are not compared; measure both on one, or compare their ratios to the reference (varve report)", c.Old, c.New)}
	case len(d.Rows) == 0:
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

// difference has the results of a comparison.
type difference struct {
	Level float64   `json:"level"` // p-value that the false discovery rate leaves for a row
	Need  int       `json:"need"`  // repetitions a side with which a row can be significant
	Rows  []diffRow `json:"rows"`
	Gone  []string  `json:"gone"`            // benchmarks of old that are missing or failed in new
	Hosts []string  `json:"hosts,omitempty"` // rows that are of other hosts, and so not compared
	Apart bool      `json:"apart"`           // old and new share no sitting
}

// diffRow compares one unit of one benchmark.
type diffRow struct {
	Unit    string  `json:"unit"`
	Name    string  `json:"name"`
	Old     float64 `json:"old"` // medians
	New     float64 `json:"new"`
	Change  float64 `json:"change"` // the part of old by which new differs, 0 from 0
	P       float64 `json:"p"`
	N       [2]int  `json:"n"`
	Verdict string  `json:"verdict"`
	better  int     // 1: higher is better
	least   float64 // smallest possible P
}

// Verdicts on a row. Unknown means that the samples are too few for any
// difference to be significant.
const (
	verdictWorse   = "worse"
	verdictBetter  = "better"
	verdictSame    = "same"
	verdictUnknown = "too few"
)

// unitRow names one unit of one benchmark.
type unitRow struct{ unit, name string }

// gather returns the values of one side, its rows in order, and the names of
// its benchmarks.
func gather(s *report.Set) (values map[unitRow][]report.Runs, rows []unitRow, names map[string]bool) {
	values, names = make(map[unitRow][]report.Runs), make(map[string]bool)
	for _, l := range s.Lines {
		name := strings.TrimSpace(cmp.Or(l.GetConfig("experiment"), l.GetConfig("pkg")) + " " + string(l.Name.Full()))
		names[name] = true
		for _, v := range l.Values {
			at := unitRow{v.Unit, name}
			if direction(s, v.Unit) == 0 {
				continue
			}
			if values[at] == nil {
				rows = append(rows, at)
			}
			values[at] = report.AddRun(values[at], l.GetConfig("sitting"), l.GetConfig("host"), v.Value)
		}
	}
	slices.SortStableFunc(rows, func(a, b unitRow) int { return strings.Compare(a.unit, b.unit) })
	return values, rows, names
}

// sides pairs the sittings that both sets have. If they share none, it pairs by
// host: the runs, or the medians if there are several sittings.
func sides(old, now []report.Runs) (list []report.Side, apart bool) {
	for _, pair := range report.Paired(old, now) {
		if pair[0].Sitting != "" {
			list = append(list, report.Side{Host: pair[0].Host, Runs: pair[1].Values, Reference: pair[0].Values})
		}
	}
	if len(list) > 0 {
		return list, false
	}
	of := func(host string, all []report.Runs) []report.Runs {
		return slices.DeleteFunc(slices.Clone(all), func(r report.Runs) bool { return r.Host != host })
	}
	seen := make(map[string]bool)
	for _, r := range old {
		a, b := of(r.Host, old), of(r.Host, now)
		switch {
		case seen[r.Host] || len(b) == 0:
		case len(a) == 1 && len(b) == 1:
			list = append(list, report.Side{Host: r.Host, Runs: b[0].Values, Reference: a[0].Values})
		default:
			list = append(list, report.Side{Host: r.Host, Runs: medians(b), Reference: medians(a)})
		}
		seen[r.Host] = true
	}
	return list, true
}

func medians(sittings []report.Runs) (list []float64) {
	for _, r := range sittings {
		list = append(list, report.NewFigure([]report.Runs{r}).Center)
	}
	return list
}

// compare compares the two sides of a row.
func (r *diffRow) compare(list []report.Side) {
	var old, now []report.Runs
	for _, s := range list {
		old, now = append(old, report.Runs{Values: s.Reference}), append(now, report.Runs{Values: s.Runs})
		r.N[0], r.N[1] = r.N[0]+len(s.Reference), r.N[1]+len(s.Runs)
	}
	r.Old, r.New = report.NewFigure(old).Center, report.NewFigure(now).Center
	r.P, r.least = report.Separated(list)
	if r.Old != 0 {
		r.Change = (r.New - r.Old) / math.Abs(r.Old)
	}
	if ratio := report.NewRatio(list); len(list) > 1 && ratio.Median > 0 { // medians of different hosts are not comparable
		r.Change = ratio.Median - 1
	}
}

// direction returns 1 if higher values of a unit are better, -1 if lower ones
// are, and 0 if that is not known.
func direction(s *report.Set, unit string) int {
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
		list, apart := sides(was[at], is[at])
		if len(list) == 0 {
			d.Hosts = append(d.Hosts, at.unit+" "+at.name)
			continue
		}
		r := diffRow{Unit: at.unit, Name: at.name, better: direction(before, at.unit)}
		r.compare(list)
		d.Rows, d.Apart = append(d.Rows, r), d.Apart || apart
	}
	if len(d.Rows) > 0 {
		d.judge(c)
	}
	return d
}

// judge sets the verdicts of all rows by the procedure of Benjamini and
// Hochberg. The threshold is the largest p-value that is not above its share of
// alpha; if there is none, the value that the next row would have needed.
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
		change := 100 * max(math.Abs(r.Change), math.Abs(r.Change/(1+r.Change))) // relative to the smaller value
		switch {
		case r.least > d.Level:
			r.Verdict = verdictUnknown
		case r.P > d.Level || r.Old == r.New || r.Old != 0 && change <= c.Threshold:
			r.Verdict = verdictSame
		case (r.Change > 0 || r.Old == 0 && r.New > 0) == (r.better > 0):
			r.Verdict = verdictBetter
		default:
			r.Verdict = verdictWorse
		}
	}
}

// leastP is the smallest possible p-value, of samples that do not overlap: 2
// divided by the number of ways to divide the values into two samples.
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

// change formats the difference relative to the old median, if that is
// possible.
func (r *diffRow) change() string {
	if r.Old == 0 && r.New != 0 {
		return "from 0"
	}
	return fmt.Sprintf("%+.1f%%", 100*r.Change)
}

func (d *difference) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for i, r := range d.Rows {
		if i == 0 || d.Rows[i-1].Unit != r.Unit {
			fmt.Fprintf(out, "%s\told\tnew\tchange\n", r.Unit)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s (p=%.3f n=%d+%d)\t%s\n", r.Name, report.Number(r.Old), report.Number(r.New), r.change(), r.P, r.N[0], r.N[1], strings.TrimPrefix(r.Verdict, verdictSame))
	}
	for _, name := range d.Gone {
		fmt.Fprintf(out, "gone or failed: %s\n", name)
	}
	for _, name := range d.Hosts {
		fmt.Fprintf(out, "not compared, since it is of other hosts: %s\n", name)
	}
	if d.Apart {
		fmt.Fprintln(out, "old and new are of different sittings: what else changed on the host between them counts too")
	}
	if d.count(verdictUnknown) > 0 {
		fmt.Fprintln(out, d.tooFew())
	}
	fmt.Fprintf(out, "%d compared, %d worse, %d better, %d gone or failed (p ≤ %.2g)\n", len(d.Rows), d.count(verdictWorse), d.count(verdictBetter), len(d.Gone), d.Level)
	return out.Flush()
}
