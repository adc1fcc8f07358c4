package cli

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
)

func (d *difference) print(out io.Writer) error {
	for _, t := range d.Units {
		if err := t.print(out); err != nil {
			return err
		}
	}
	for _, f := range d.Failed {
		fmt.Fprintf(out, "fails now: %s: %s\n", f.Name, f.Error)
	}
	for side, names := range [][]string{d.OnlyOld, d.OnlyNew} {
		for _, name := range names {
			fmt.Fprintf(out, "only in %s: %s\n", []string{"old", "new"}[side], name)
		}
	}
	if d.Unknown > 0 {
		fmt.Fprintf(out, "? %s\n", d.tooFew())
	}
	_, err := fmt.Fprintf(out, "%d compared, %d worse by more than %g%% and the noise (false discovery rate %g, p ≤ %.2g), %d failing now\n",
		d.Compared, d.Regressions-len(d.Failed), d.Threshold, d.Alpha, d.Level, len(d.Failed))
	return err
}

// tooFew says what would help the rows that are unknown.
func (d *difference) tooFew() string {
	text := fmt.Sprintf("%d of %d have too few repetitions to tell a doubling", d.Unknown, d.Compared)
	if d.Need > 0 {
		text += fmt.Sprintf(", repeat both sides at least %d times", d.Need)
	}
	if d.TooNoisy > 0 {
		text += fmt.Sprintf("; %d are too noisy even for 100: find out why", d.TooNoisy)
	}
	return text
}

// print writes the table of a metric.
func (t *unitTable) print(out io.Writer) error {
	heading := t.Better + " is better"
	if t.Better == result.Neutral.String() {
		heading = "neither is better"
	}
	fmt.Fprintf(out, "%s, %s\n", t.Unit, heading)
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "\told\tnew\tdelta\t\n")
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.Old.text(), r.New.text(), r.delta(), r.mark())
	}
	if t.Geomean != nil && len(t.Rows) > 1 {
		fmt.Fprintf(w, "geomean\t\t\t%+.2f%%\t\n", 100*(*t.Geomean-1))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	_, err := fmt.Fprintln(out)
	return err
}

// text is the median with the larger side of its interval, where there is one, in
// percent.
func (s diffSide) text() string {
	if s.Low == nil {
		return figure(s.Median)
	}
	spread := stat.Summary{Median: s.Median, Low: *s.Low, High: *s.High}.Spread()
	if math.IsNaN(spread) || math.IsInf(spread, 0) {
		return figure(s.Median) + " ± ?"
	}
	return fmt.Sprintf("%s ± %.0f%%", figure(s.Median), 100*spread)
}

// figure writes four significant digits, and all of those before the point.
func figure(v float64) string {
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// delta is the change, "~" when it is not significant, with what says so.
func (r *diffRow) delta() string {
	change := "~"
	switch {
	case !r.Significant:
	case r.Delta == nil:
		change = "from 0"
	default:
		change = fmt.Sprintf("%+.2f%%", *r.Delta)
	}
	return fmt.Sprintf("%s (%s)", change, benchmath.Comparison{P: r.P, N1: r.Old.N, N2: r.New.N})
}

// mark is what the eye looks for.
func (r *diffRow) mark() string {
	switch {
	case r.Verdict == verdictUnknown:
		return "?"
	case r.Verdict != verdictSame:
		return r.Verdict
	case r.Within && r.Old.Median != r.New.Median:
		return fmt.Sprintf("within noise (±%.0f%%)", r.Noise)
	}
	return ""
}
