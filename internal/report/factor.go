package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// claim is a factor between two settings that the documents report, beside what was
// measured of it.
type claim struct {
	setting string
	theirs  float64
	ours    map[string]agreement // by engine
}

// agreement is how a factor of the documents stands to the measured one.
type agreement int

const (
	open        agreement = iota // the noise leaves room for theirs and for no difference
	agrees                       // theirs is inside the interval of ours, widened by the noise
	contradicts                  // it is not
)

// agree compares a factor with the interval of what was measured.
func agree(theirs, low, high, noise float64) agreement {
	low, high = low/noise, high*noise
	inside := func(f float64) bool { return low <= f && f <= high }
	switch {
	case !inside(theirs):
		return contradicts
	case max(theirs, 1/theirs) > noise && inside(1):
		return open
	}
	return agrees
}

// factors adds the rows that compare settings, and keeps what the documents say of them.
func (b *brief) factors(v *view, p *pivot, t *sheet) {
	for compare := range strings.FieldsSeq(v.compare) {
		f := strings.Split(compare, ":")
		at := slices.Index(p.keys, f[0])
		if at < 0 {
			continue
		}
		if f[1] == "step" {
			t.steps(p, at)
			continue
		}
		for _, m := range v.figures() {
			for i := range p.rows {
				if r := &p.rows[i]; r.values[at] == f[1] {
					b.factor(t, p, at, r, f[2], m)
				}
			}
		}
	}
}

// factor adds the row that compares a setting with the one that has another value.
func (b *brief) factor(t *sheet, p *pivot, at int, from *pivotRow, value string, m runs.Measure) {
	values := slices.Clone(from.values)
	values[at] = value
	i := slices.IndexFunc(p.rows, func(r pivotRow) bool { return slices.Equal(r.values, values) })
	if i < 0 {
		return
	}
	to := &p.rows[i]
	values[at] = readable(from.values[at]) + " → " + readable(value)
	c := claim{setting: strings.Join(values, ", "), ours: map[string]agreement{}}
	theirs := make([]Cell, len(t.peers))
	for n, peer := range t.peers {
		before, after := peer.figure(p, from, m.Unit), peer.figure(p, to, m.Unit)
		if before != nil && after != nil && *before > 0 && *after > 0 {
			c.theirs = t.view.worse(m.Unit, *before, *after)
			theirs[n] = Cell{Text: runs.Number(c.theirs) + "×"}
		}
	}
	if c.theirs = cmp.Or(c.theirs, t.view.claim); c.theirs == 0 && len(t.peers) > 0 {
		return // the documents have factors, but not this one
	}
	row := t.row(values, m)
	copy(row, theirs)
	for n, e := range p.engines {
		s, ok := t.view.factor(from.byEngine[e], to.byEngine[e], m)
		if !ok {
			continue
		}
		row[len(t.peers)+n] = factorCell(s, p.floor.Of(m.Unit))
		if c.theirs > 0 {
			c.ours[e] = agree(c.theirs, s.Low, s.High, p.floor.Of(m.Unit))
		}
	}
	if len(c.ours) > 0 {
		b.claims = append(b.claims, c)
	}
}

// worse is how many times worse the second figure is, or better.
func (v *view) worse(unit string, before, after float64) float64 {
	if (result.Better(unit) == result.Higher) != v.gain {
		return before / after
	}
	return after / before
}

// factor is the median of the factors in each block, with its interval: that of few
// blocks is their range.
func (v *view) factor(from, to *runs.Group, m runs.Measure) (stat.Summary, bool) {
	if from == nil || to == nil {
		return stat.Summary{}, false
	}
	var list []float64
	for _, a := range from.Good() {
		for _, b := range to.Good() {
			before, ok := m.Of(a)
			after, ok2 := m.Of(b)
			if a.Repeat == b.Repeat && ok && ok2 && before > 0 && after > 0 {
				list = append(list, v.worse(m.Unit, before, after))
			}
		}
	}
	if len(list) == 0 {
		return stat.Summary{}, false
	}
	s := stat.Summarize(list)
	s.Low, s.High = interval(list)
	return s, true
}

func factorCell(s stat.Summary, noise float64) Cell {
	text := runs.Number(s.Median) + "×"
	if max(s.Median, 1/s.Median) <= noise {
		text = "≈ " + text
	}
	c := Cell{Text: text}
	if low, high := runs.Number(s.Low), runs.Number(s.High); low != high {
		c.Spread = low + "–" + high
	}
	return c
}

// steps adds a row for each value of a key, which compares it with the one before. What
// else varies stands in the cells. What is inside the noise has no row.
func (t *sheet) steps(p *pivot, at int) {
	t.Caption += " Steps inside the noise are left out."
	m := t.view.figures()[0]
	series := runs.By(p.rows, func(r pivotRow) string { return strings.Join(p.but(&r, at), " ") })
	for i := 1; i < len(series[0]); i++ {
		step := map[int]string{}
		for n, e := range p.engines {
			var cells []string
			for _, rows := range series {
				if i >= len(rows) {
					continue
				}
				s, ok := t.view.factor(rows[i-1].byEngine[e], rows[i].byEngine[e], m)
				if c := factorCell(s, p.floor.Of(m.Unit)); ok && !strings.HasPrefix(c.Text, "≈") {
					cells = append(cells, joinWords(" ", append(p.but(&rows[i], at), c.line())...))
				}
			}
			if len(cells) > 0 {
				step[n] = strings.Join(cells, ", ")
			}
		}
		if len(step) == 0 {
			continue
		}
		name := "+ " + stepName(series[0][i].values[at])
		row := t.row(append([]string{name}, slices.Repeat([]string{""}, len(p.keys)-1)...), m)
		for n, text := range step {
			row[len(t.peers)+n].Text = text
		}
	}
}

// grow says how a figure grows with the size, where that can be told. It has a row of its
// own, or stands beside the one size that a table has. The pivot has all sizes.
func (t *sheet) grow(p *pivot, of *pivotRow, m runs.Measure) {
	at, all := p.size(), p.series()
	i := slices.IndexFunc(all, func(series []pivotRow) bool {
		return slices.ContainsFunc(series, func(r pivotRow) bool { return maps.Equal(r.byEngine, of.byEngine) })
	})
	if at < 0 || i < 0 {
		return
	}
	var row []Cell
	if t.view.size != "" {
		row = t.Rows[len(t.Rows)-1][t.named:]
	} else {
		values := slices.Clone(all[i][0].values)
		values[at] = "growth"
		row = t.row(values, m)
	}
	for n, e := range t.engines {
		law, ok := p.law(all[i], e, m)
		if !ok {
			continue
		}
		cell := &row[len(t.peers)+n]
		low, high := law.Interval()
		if t.view.size != "" {
			cell.Spread = joinWords("; ", cell.Spread, fmt.Sprintf("size^%.2f, %.2f to %.2f", law.Exponent, low, high))
		} else {
			cell.Text = fmt.Sprintf("size^%.2f (%.2f to %.2f)", law.Exponent, low, high)
		}
	}
}

// law is the power law through all blocks of an engine; false where they do not tell it.
func (p *pivot) law(series []pivotRow, engine string, m runs.Measure) (stat.PowerLaw, bool) {
	var x, y []float64
	var seen []string
	at, amount := p.size(), number
	if p.sized != nil {
		amount = p.sized
	}
	for _, r := range series {
		size, g := amount(r.values[at]), r.byEngine[engine]
		if g == nil {
			continue
		}
		for _, v := range g.Values(m) {
			if size > 0 && v > 0 {
				x, y, seen = append(x, size), append(y, v), runs.AppendNew(seen, r.values[at])
			}
		}
	}
	law, err := stat.FitPowerLaw(x, y)
	if err != nil || len(seen) < enoughSizes {
		return law, false
	}
	low, high := law.Interval()
	return law, high-low <= vague
}

// enoughSizes are those that a growth is told from, unless its interval is wider than vague:
// then it may as well fall as grow with the size.
const (
	enoughSizes = 3
	vague       = 2
)

// judgeClaims says whether the documents are right, and where that depends on what.
func judgeClaims(claims []claim) string {
	if len(claims) == 0 {
		return ""
	}
	var engines, settings []string
	by, in := map[string][3]int{}, map[string][3]int{}
	var all [3]int
	for _, c := range claims {
		settings = runs.AppendNew(settings, c.setting)
		for e, a := range c.ours {
			engines = runs.AppendNew(engines, e)
			count(by, e, a)
			count(in, c.setting, a)
			all[a]++
		}
	}
	total := all[open] + all[agrees] + all[contradicts]
	switch total {
	case all[agrees]:
		return fmt.Sprintf("**Agrees** with the documents in all %d factors.", total)
	case all[contradicts]:
		return fmt.Sprintf("**Contradicts** the documents in all %d factors.", total)
	case all[open]:
		return fmt.Sprintf("**Open**: the noise leaves room for the documents' factors and for no difference, in all %d.", total)
	}
	sortEngines(engines)
	what, list, of := "setting", settings, in
	if spreadOut(by) >= spreadOut(in) {
		what, list, of = "engine", engines, by
	}
	var parts []string
	for _, name := range list {
		n := of[name]
		parts = append(parts, fmt.Sprintf("%s: %d of %d", name, n[agrees], n[open]+n[agrees]+n[contradicts]))
	}
	text := fmt.Sprintf("**Depends on the %s**: the documents' factors agree in %d of %d (%s)", what, all[agrees], total, strings.Join(parts, "; "))
	if all[open] > 0 {
		text += fmt.Sprintf("; %d are open for the noise", all[open])
	}
	return text + "."
}

func count(of map[string][3]int, name string, a agreement) {
	n := of[name]
	n[a]++
	of[name] = n
}

// spreadOut is how differently those of a list agree: the spread of the part that does.
func spreadOut(of map[string][3]int) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, n := range of {
		part := float64(n[agrees]) / float64(n[open]+n[agrees]+n[contradicts])
		low, high = min(low, part), max(high, part)
	}
	return high - low
}

// standings compare the engines with each other, and the layouts, by the geometric mean
// of a figure over what both have.
func (b *brief) standings() (lines []string) {
	for _, key := range []string{"engine", "layout"} {
		if b.first == nil {
			break
		}
		s := standing{unit: b.unit, floor: b.in.floor(b.x.id), values: map[string]map[string]float64{}}
		for _, r := range b.first.rows {
			for _, g := range b.first.of(&r) {
				if v, ok := g.Median(runs.Measure{Unit: b.unit}); ok && v > 0 && g.Experiment == b.x.id {
					s.add(g.Get(key), key, g, v)
				}
			}
		}
		if text := s.text(); text != "" && result.Better(b.unit) != result.Neutral && !strings.HasSuffix(b.x.steps(), key) {
			lines = append(lines, fmt.Sprintf("By %s, %s over what both have: %s.", key, b.unit, text))
		}
	}
	return lines
}

// standing is a figure of some, in each setting of the rest.
type standing struct {
	unit            string
	floor           runs.Floor
	items, settings []string
	values          map[string]map[string]float64 // by item and setting
}

func (s *standing) add(item, key string, g *runs.Group, v float64) {
	setting := g.Name + " " + g.Without(key).String()
	if s.values[item] == nil {
		s.values[item] = map[string]float64{}
	}
	s.values[item][setting] = v
	s.items, s.settings = runs.AppendNew(s.items, item), runs.AppendNew(s.settings, setting)
}

// ratio is the geometric mean of what one has of another's, over the n settings that both
// have.
func (s *standing) ratio(of, to string) (ratio float64, n int) {
	sum := 0.0
	for _, setting := range s.settings {
		v, ok := s.values[of][setting]
		if base, both := s.values[to][setting]; ok && both {
			sum, n = sum+math.Log(v/base), n+1
		}
	}
	return math.Exp(sum / float64(n)), n
}

// text names the best and what the others have of it; "" where there is nothing to
// compare.
func (s *standing) text() string {
	if len(s.items) < 2 || s.items[0] == "" {
		return ""
	}
	best := s.items[0]
	for _, item := range s.items[1:] {
		if r, n := s.ratio(item, best); n > 0 && (r > 1) == (result.Better(s.unit) == result.Higher) && r != 1 {
			best = item
		}
	}
	parts := []string{best + " first"}
	for _, item := range s.items {
		r, n := s.ratio(item, best)
		if n == 0 || item == best {
			continue
		}
		text := item + " " + runs.Number(r) + "×"
		if s.floor.Inside(s.unit, r, 1) {
			text = "≈ " + text
		}
		parts = append(parts, text)
	}
	if len(parts) == 1 {
		return ""
	}
	return strings.Join(parts, ", ")
}
