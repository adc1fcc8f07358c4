package cli

import (
	"bytes"
	_ "embed" // diff.tmpl
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"text/tabwriter"
	"text/template"

	"golang.org/x/perf/benchmath"

	"github.com/varvedb/varve/bench/stat"
)

//go:embed diff.tmpl
var diffTemplate string

var diffText = template.Must(template.New("diff").Funcs(template.FuncMap{
	"side": sideText, "delta": (*diffRow).delta, "mark": (*diffRow).mark, "percent": percent,
	"tooFew": (*difference).tooFew, "summary": (*difference).summary,
}).Parse(diffTemplate))

var blanksAtEnd = regexp.MustCompile(" +\n")

func (d *difference) print(out io.Writer) error {
	var text bytes.Buffer
	tables := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	if err := errors.Join(diffText.Execute(tables, d), tables.Flush()); err != nil {
		return err
	}
	_, err := out.Write(blanksAtEnd.ReplaceAll(text.Bytes(), []byte("\n")))
	return err
}

func (d *difference) summary() string {
	return fmt.Sprintf("%d compared, %d worse by more than %g%% and the noise (false discovery rate %g, p ≤ %.2g), %d failing now",
		d.Compared, d.Regressions-len(d.Failed), d.Threshold, d.Alpha, d.Level, len(d.Failed))
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

// sideText is the median with the larger side of its interval, where there is one, in
// percent.
func sideText(s stat.Summary) string {
	median := fmt.Sprintf("%.4g", s.Median)
	if math.Abs(s.Median) >= 1000 { // all digits before the point
		median = fmt.Sprintf("%.0f", s.Median)
	}
	spread := s.Spread()
	switch {
	case !s.Bounded():
		return median
	case math.IsNaN(spread) || math.IsInf(spread, 0):
		return median + " ± ?"
	}
	return fmt.Sprintf("%s ± %.0f%%", median, 100*spread)
}

func percent(ratio *float64) string { return fmt.Sprintf("%+.2f%%", 100*(*ratio-1)) }

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
