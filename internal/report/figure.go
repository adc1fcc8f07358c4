package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/result"
)

// Judged is the minimum number of runs for judging a limit.
const Judged = 3

// Runs are the repeats of one setting in one sitting, with one unit.
type Runs struct {
	Sitting, Host string
	Values        []float64
}

// AddRun adds a value to the runs of its sitting and host.
func AddRun(list []Runs, sitting, host string, value float64) []Runs {
	i := slices.IndexFunc(list, func(r Runs) bool { return r.Sitting == sitting && r.Host == host })
	if i < 0 {
		i, list = len(list), append(list, Runs{Sitting: sitting, Host: host})
	}
	list[i].Values = append(list[i].Values, value)
	return list
}

// Paired returns the pairs of runs of a and b with the same sitting and host.
func Paired(a, b []Runs) (pairs [][2]Runs) {
	for _, of := range a {
		for _, with := range b {
			if of.Sitting == with.Sitting && of.Host == with.Host {
				pairs = append(pairs, [2]Runs{of, with})
			}
		}
	}
	return pairs
}

// Figure is a median over sittings. The statistical unit is the sitting,
// because the runs of a sitting share its host and hour, so more runs say
// nothing about other hours.
type Figure struct {
	N       int     `json:"n"` // sittings
	Hosts   int     `json:"hosts"`
	Center  float64 `json:"median"` // of the sittings' medians
	Lo      float64 `json:"low"`    // the smallest and largest of the sittings; with one sitting, of its runs
	Hi      float64 `json:"high"`
	Off     bool    `json:"off,omitempty"`     // a run was measured while other programs used the machine
	AtLimit bool    `json:"atLimit,omitempty"` // a run's percentile is an arrival that was given up: its latency is at least result.MaxWait
	Busy    float64 `json:"busy,omitempty"`    // if not 0, the smallest busy share: the figure is not the engine's capacity
	Runs    []Runs  `json:"-"`
}

// NewFigure returns the figure of sittings; nil when there are none.
func NewFigure(sittings []Runs) *Figure {
	if len(sittings) == 0 {
		return nil
	}
	f := &Figure{N: len(sittings), Runs: sittings}
	var medians []float64
	var hosts []string
	for _, s := range sittings {
		medians, hosts = append(medians, median(s.Values)), appendNew(hosts, s.Host)
	}
	f.Center, f.Hosts = median(medians), len(hosts)
	if f.N == 1 {
		medians = sittings[0].Values
	}
	f.Lo, f.Hi = slices.Min(medians), slices.Max(medians)
	return f
}

// Total is the number of runs in all sittings.
func (f *Figure) Total() (n int) {
	for _, r := range f.Runs {
		n += len(r.Values)
	}
	return n
}

// Part is one figure as a percentage of another, run by run in each sitting
// that has both; nil for none.
func Part(of, whole *Figure) *Figure {
	var sittings []Runs
	for _, pair := range Paired(of.Runs, whole.Runs) {
		a, b := pair[0], pair[1]
		if slices.Min(b.Values) <= 0 {
			continue
		}
		part := Runs{Sitting: a.Sitting, Host: a.Host}
		for i := range min(len(a.Values), len(b.Values)) {
			part.Values = append(part.Values, 100*a.Values[i]/b.Values[i])
		}
		sittings = append(sittings, part)
	}
	return NewFigure(sittings)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// extent describes the amount of data behind a median.
func extent(sittings, hosts, runs int) string {
	switch {
	case sittings == 1 && runs == 1:
		return "one run"
	case sittings == 1:
		return "one sitting"
	case hosts == 1:
		return fmt.Sprintf("n=%d, one host", sittings)
	}
	return fmt.Sprintf("n=%d, %d hosts", sittings, hosts)
}

// Plural formats a number of things: 1 block, 2 blocks.
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Cell is a table cell.
type Cell struct {
	Text  string `json:"text"`
	Range string `json:"range,omitempty"` // the smallest and the largest
	Of    string `json:"of,omitempty"`    // its data: how many sittings and hosts

	Rank *float64 `json:"-"` // what rows of a column are compared by; nil where they cannot be
}

// cellsOf makes cells of texts.
func cellsOf(texts []string) (list []Cell) {
	for _, text := range texts {
		list = append(list, Cell{Text: text})
	}
	return list
}

// numbers formats the numbers of some sittings in the list of all.
func numbers(sittings, all []string) Cell {
	list := make([]string, len(sittings))
	for i, id := range sittings {
		list[i] = strconv.Itoa(slices.Index(all, id) + 1)
	}
	return Cell{Text: strings.Join(list, ", ")}
}

// More is the text after the figure: its range and its data.
func (c Cell) More() string { return strings.Trim(c.Range+", "+c.Of, ", ") }

// String is the cell as plain text.
func (c Cell) String() string {
	if more := c.More(); more != "" {
		return c.Text + " (" + more + ")"
	}
	return c.Text
}

// cell formats a figure, "–" for none.
func (f *Figure) cell() Cell {
	switch {
	case f == nil:
		return Cell{Text: "–"}
	case f.Busy > 0:
		return Cell{Text: "not busy: " + Number(f.Busy)}
	}
	runs := len(f.Runs[0].Values)
	c := Cell{Text: f.number(f.Center), Of: extent(f.N, f.Hosts, runs)}
	if f.Off {
		c.Text += "†"
	}
	if lo, hi := f.number(f.Lo), f.number(f.Hi); lo != hi {
		c.Range = lo + "–" + hi
	}
	return c
}

// waitLimit is result.MaxWait in milliseconds.
const waitLimit = float64(result.MaxWait / time.Millisecond)

// number formats a value.
func (f *Figure) number(v float64) string {
	if f.AtLimit && v >= waitLimit {
		return "≥ 2 s"
	}
	return Number(v)
}

// String is the figure in plain text, "–" for none.
func (f *Figure) String() string { return f.cell().String() }

// In formats a figure with its unit and its data: "248K rows/s (207K–249K, n=3,
// 2 hosts)".
func (f *Figure) In(unit string) string {
	c := f.cell()
	if f != nil && f.Busy == 0 && !strings.HasPrefix(c.Text, "≥") {
		c.Text = strings.TrimSpace(c.Text + " " + unit)
	}
	return c.String()
}

// Number formats a number with three significant digits and thousands
// separators or suffixes.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case v == math.Trunc(v) && size < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 999_500_000:
		return threeDigits(v/1e9) + "G"
	case size >= 999_500:
		return threeDigits(v/1e6) + "M"
	case size >= 9999.5:
		return threeDigits(v/1e3) + "K"
	case size >= 999.5:
		text := strconv.FormatFloat(v, 'f', 0, 64)
		return text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return threeDigits(v)
}

func threeDigits(v float64) string {
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
