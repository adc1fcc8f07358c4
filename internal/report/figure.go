package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
)

const (
	confidence = 0.95

	// Judged is the number of samples below which nothing is judged.
	Judged = 3
)

// Figure is the median of repeated measurements.
type Figure struct {
	N      int               `json:"n"`
	Center float64           `json:"median"`
	Lo     float64           `json:"low"` // the 95 % interval of order statistics from six samples on, else the range
	Hi     float64           `json:"high"`
	Off    bool              `json:"off,omitempty"` // one of the measurements was made while the machine was not as before
	Sample *benchmath.Sample `json:"-"`
}

// NewFigure returns the figure of values, which must not be empty.
func NewFigure(values []float64, off bool) *Figure {
	s := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	m := benchmath.AssumeNothing.Summary(s, confidence)
	f := &Figure{N: len(values), Center: m.Center, Lo: m.Lo, Hi: m.Hi, Off: off, Sample: s}
	if math.IsInf(f.Lo, 0) || math.IsInf(f.Hi, 0) {
		f.Lo, f.Hi = slices.Min(values), slices.Max(values)
	}
	return f
}

// Cell is what stands in a table.
type Cell struct {
	Text string `json:"text"`
	More string `json:"more,omitempty"` // the interval or the range, and how many measurements it is of
}

// cellsOf are cells of texts.
func cellsOf(texts []string) (list []Cell) {
	for _, text := range texts {
		list = append(list, Cell{Text: text})
	}
	return list
}

// String is the cell in plain text.
func (c Cell) String() string {
	if c.More == "" {
		return c.Text
	}
	return c.Text + " (" + c.More + ")"
}

// cell writes a figure, "–" for none.
func (f *Figure) cell() Cell {
	if f == nil {
		return Cell{Text: "–"}
	}
	c := Cell{Text: Number(f.Center)}
	if f.Off {
		c.Text += "†"
	}
	if f.N > 1 {
		if lo, hi := Number(f.Lo), Number(f.Hi); lo == hi {
			c.More = lo + ", "
		} else {
			c.More = lo + "–" + hi + ", "
		}
	}
	c.More += "n=" + strconv.Itoa(f.N)
	return c
}

// String is the figure in plain text, "–" for none.
func (f *Figure) String() string { return f.cell().String() }

// In writes a figure with its unit, its interval or range and how many measurements it is of:
// "248K rows/s (207K–249K, n=3)".
func (f *Figure) In(unit string) string {
	c := f.cell()
	return strings.TrimSpace(c.Text+" "+unit) + " (" + c.More + ")"
}

// ranked writes a figure with half of its range in percent and what its rank is.
func (f *Figure) ranked(mark string) Cell {
	text := Number(f.Center)
	if half := math.Round(50 * (f.Hi - f.Lo) / math.Abs(f.Center)); half >= 1 && f.Center != 0 {
		text += fmt.Sprintf("±%.0f%%", half)
	}
	return Cell{Text: text + mark}
}

// Apart tells whether all measurements of two figures show which one is the larger.
func (f *Figure) Apart(other *Figure) bool {
	return min(f.N, other.N) >= Judged && (f.Hi < other.Lo || other.Hi < f.Lo)
}

// Number writes a figure with three significant digits, and thousands as they are read.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case v == math.Trunc(v) && size < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 999_500_000:
		return three(v/1e9) + "G"
	case size >= 999_500:
		return three(v/1e6) + "M"
	case size >= 9999.5:
		return three(v/1e3) + "K"
	case size >= 999.5:
		text := strconv.FormatFloat(v, 'f', 0, 64)
		return text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return three(v)
}

func three(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	text := strconv.FormatFloat(v, 'f', max(digits, 0), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Test is the Mann-Whitney test of two figures. benchmath takes the tail from the distribution of
// its first argument, which with equal values in samples of different sizes is not that of the
// second: the one with the lower ranks has to come first.
func Test(a, b *Figure) benchmath.Comparison {
	if above(a.Sample.Values, b.Sample.Values) < len(a.Sample.Values)*len(b.Sample.Values) {
		a, b = b, a
	}
	c := benchmath.AssumeNothing.Compare(a.Sample, b.Sample)
	c.P = min(c.P, 1) // a little more when all values are equal
	return c
}

// above counts the pairs in which the value of b is the larger, twice, and once those of equals.
func above(a, b []float64) (pairs int) {
	for _, x := range a {
		for _, y := range b {
			pairs += 1 + cmp.Compare(y, x)
		}
	}
	return pairs
}
