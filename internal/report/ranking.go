package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/schemas"
)

// measure is a column of the ranking: a figure of the runs of an experiment whose
// configurations have certain values.
type measure struct {
	head       string
	experiment string
	with       result.Config
	unit       string
}

// name says what is measured and where.
func (m measure) name() string { return fmt.Sprintf("%s (%s)", m.head, m.experiment) }

var (
	paced, flat = result.Config{{Key: "rate", Value: "6000"}}, result.Config{{Key: "rate", Value: "max"}}
	measures    = []measure{
		{"commit p50, ms", "D1", paced, "p50-ms"},
		{"commit p99, ms", "D1", paced, "p99-ms"},
		{"sustained rows/s", "D1", flat, "settled-rows/s"},
		{"reorg p99, ms", "D3", nil, "p99-ms"},
		{"reads/s, mix A", "C1", mix("A"), "qps"},
		{"reads/s, mix B", "C1", mix("B"), "qps"},
		{"reads/s, mix C", "C1", mix("C"), "qps"},
		{"reads/s beside writes", "D4", paced.With("qps", "ceiling"), "ceiling-qps"},
		{"MB on disk", "D1", paced, "data-MB"},
	}
)

func mix(name string) result.Config {
	return result.Config{{Key: "mix", Value: name}, {Key: "clients", Value: "1"}}
}

// settingOf is what else than engine, layout and what is given a group is of.
func settingOf(g *runs.Group, given result.Config) string {
	var parts []string
	for _, p := range g.Config {
		if p.Key != "engine" && p.Key != "layout" && given.Get(p.Key) == "" {
			parts = append(parts, p.Key+" "+p.Value)
		}
	}
	return strings.Join(parts, ", ")
}

func (m measure) has(g *runs.Group) bool {
	return g.Experiment == m.experiment && g.Get("engine") != "" && g.Get("layout") != "" &&
		!slices.ContainsFunc(m.with, func(p result.Pair) bool { return g.Get(p.Key) != p.Value })
}

// comparable returns the groups of a measure that differ in engine and layout alone:
// those of the setting that was measured most often, of several the largest.
func (m measure) comparable(groups []*runs.Group) []*runs.Group {
	setting := func(g *runs.Group) string { return settingOf(g, m.with) }
	settings := runs.By(runs.Where(groups, m.has), setting)
	if len(settings) == 0 {
		return nil
	}
	return slices.MaxFunc(settings, func(a, b []*runs.Group) int {
		x, _ := a[0].Scale()
		y, _ := b[0].Scale()
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(x, y), strings.Compare(setting(b[0]), setting(a[0])))
	})
}

// ranking compares engines with layouts by all measures together. A measure counts
// when half of the rows have it.
type ranking struct {
	Table
	in      *Input
	rows    []*ranked
	counted int
	noise   float64   // logarithm of the factor that all measures that count are off by when each is by its noise
	scales  []float64 // of the data
	blocks  string    // what the figures are medians of
	never   []string  // measures of which there is no figure
	partly  []string  // measures that do not count
}

// who is an engine with a layout.
type who struct{ engine, layout string }

// ranked is an engine with a layout and its figures.
type ranked struct {
	who
	cells   []Cell  // its name, place and mean, then measures: their figures are the ratios to the best, at least 1
	logs    float64 // sum of the logarithms of those that count
	missing []string
}

// begun is how many cells stand before those of measures.
const begun = 3

func newRanking(in *Input) *ranking {
	var ids []string
	for _, m := range measures {
		ids = runs.AppendNew(ids, m.experiment)
	}
	groups, others, leftOut := in.each(ids...)
	r := &ranking{in: in, blocks: repeats(groups)}
	p, settings := new(pivot), []string(nil)
	for i, m := range measures {
		for _, g := range m.comparable(groups) {
			r.row(g).cells[begun+i] = p.figure(g, nil, runs.Measure{Unit: m.unit})
			settings = runs.AppendNew(settings, joinWords(" ", m.experiment, settingOf(g, m.with)))
			if scale, ok := g.Scale(); ok && !slices.Contains(r.scales, scale) {
				r.scales = append(r.scales, scale)
			}
		}
	}
	for i, m := range measures {
		r.relate(i, m)
	}
	r.order()
	r.head()
	r.Notes = nonempty(
		r.noiseText(), list("Not measured, or of too few operations: ", r.never), list("Not in the mean, since fewer than half of the rows have it: ", r.partly),
		r.unplaced(), list("Each column is of one setting: ", settings), list("Of another revision: ", nonempty(others)), sentence(leftOut),
	)
	return r
}

// best is the ranking of each engine's best layout of those that keep history, in as few
// words as a page about something else has room for.
func best(in *Input) Table {
	r := newRanking(in)
	var seen []string
	r.Rows = slices.DeleteFunc(r.Rows, func(row []Cell) bool {
		name := row[0].Engine
		if row[1].Text == "" || !schemas.KeepsHistory(strings.TrimPrefix(row[0].Text, name+" ")) || slices.Contains(seen, name) {
			return true
		}
		seen = append(seen, name)
		return false
	})
	for i := len(r.Columns) - 1; i >= begun; i-- {
		if !slices.ContainsFunc(r.Rows, func(row []Cell) bool { return row[i].Value != nil }) {
			r.Columns = slices.Delete(r.Columns, i, i+1)
			for n := range r.Rows {
				r.Rows[n] = slices.Delete(r.Rows[n], i, i+1)
			}
		}
	}
	for _, row := range r.Rows {
		for i := range row {
			row[i].Spread, row[i].Class = "", ""
		}
	}
	if r.Notes = nil; len(r.scales) > 0 {
		scale := slices.Max(r.scales)
		r.Caption = fmt.Sprintf("Each engine with its best layout that keeps history, at scale %g (%s entities), as multiples of the best of all layouts; ≈ is within the noise.",
			scale, runs.Number(scale*baseEntities))
	}
	return r.Table
}

// mostRanked are the rows of the ranking in a document.
const mostRanked = 12

// shortRanking is the ranking for a document: figures with their intervals, and of many rows
// the best of each engine and of each layout, then those that come next.
func shortRanking(in *Input) Table {
	r := newRanking(in)
	for _, row := range r.Rows {
		for i := begun; i < len(row); i++ {
			if c := &row[i]; c.Value != nil {
				near := strings.HasPrefix(c.Text, "≈")
				if c.Text, c.Spread = c.Spread, c.Detail; near {
					c.Text = "≈ " + c.Text
				}
			}
		}
	}
	if out := r.cut(mostRanked); out > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d more are on the page.", out))
	}
	r.Notes = []string{strings.Join(r.Notes, " ")}
	r.Caption = "Engines and layouts by the geometric mean of how many times each figure is that of the best in its column (**bold**; ≈ is inside the noise of it). " + r.blocks + "."
	return r.Table
}

// cut leaves so many rows, and returns how many it has left out.
func (r *ranking) cut(most int) int {
	keep := make([]bool, len(r.rows))
	kept := 0
	take := func(wanted func(*ranked) bool) {
		for i, row := range r.rows {
			if kept < most && !keep[i] && wanted(row) {
				keep[i] = true
				kept++
			}
		}
	}
	var seen []string
	first := func(name string) bool {
		if slices.Contains(seen, name) {
			return false
		}
		seen = append(seen, name)
		return true
	}
	take(func(row *ranked) bool { return first("engine " + row.engine) })
	for i, row := range r.rows {
		if keep[i] {
			seen = append(seen, row.layout)
		}
	}
	take(func(row *ranked) bool { return first(row.layout) })
	take(func(*ranked) bool { return true })
	all := r.Rows
	r.Rows = nil
	for i, row := range all {
		if keep[i] {
			r.Rows = append(r.Rows, row)
		}
	}
	return len(all) - len(r.Rows)
}

// list is a sentence with a list, if there is anything in it.
func list(begin string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	return begin + strings.Join(words, "; ") + "."
}

func (r *ranking) row(g *runs.Group) *ranked {
	of := who{g.Get("engine"), g.Get("layout")}
	i := slices.IndexFunc(r.rows, func(row *ranked) bool { return row.who == of })
	if i < 0 {
		i = len(r.rows)
		cells := append([]Cell{{Text: of.engine + " " + of.layout, Engine: of.engine}}, make([]Cell, begun-1+len(measures))...)
		r.rows = append(r.rows, &ranked{who: of, cells: cells})
	}
	return r.rows[i]
}

// relate sets the figures of a measure in relation to the best.
func (r *ranking) relate(i int, m measure) {
	var values []float64
	for _, row := range r.rows {
		if v := row.cells[begun+i].Value; v != nil && *v > 0 {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		r.never = append(r.never, m.name())
		return
	}
	low, high := slices.Min(values), slices.Max(values)
	best := low
	if result.Better(m.unit) == result.Higher {
		best = high
	}
	floor, counts := r.in.floor(m.experiment), 2*len(values) >= len(r.rows)
	if counts {
		r.counted++
		r.noise += math.Log(floor.Of(m.unit))
	} else {
		r.partly = append(r.partly, m.head)
	}
	for _, row := range r.rows {
		c := &row.cells[begun+i]
		if c.Value == nil || *c.Value <= 0 {
			if c.Value = nil; counts {
				row.missing = append(row.missing, m.head)
			}
			continue
		}
		ratio := max(*c.Value/best, best / *c.Value)
		c.Spread, c.Detail, c.Text = strings.NewReplacer(" (", ", ", ")", "").Replace(c.Text), c.Spread, runs.Number(ratio)+"×"
		if ratio == 1 {
			c.Class = "best"
		} else if floor.Inside(m.unit, *c.Value, best) {
			c.Text = "≈ " + c.Text
		}
		c.Value = &ratio
		if high > low {
			c.Shade = new(math.Log(ratio) / math.Log(high/low))
		}
		if counts {
			row.logs += math.Log(ratio)
		}
	}
}

// order gives places by the geometric mean of the ratios that count, the same one to rows
// that are no further apart than the noise, and none to those of which one is missing.
func (r *ranking) order() {
	slices.SortFunc(r.rows, func(a, b *ranked) int {
		return cmp.Or(cmp.Compare(len(a.missing), len(b.missing)), cmp.Compare(a.logs, b.logs),
			cmp.Compare(engine.Rank(a.engine), engine.Rank(b.engine)), cmp.Compare(a.layout, b.layout))
	})
	leader := 0
	for i, row := range r.rows {
		if r.Rows = append(r.Rows, row.cells); len(row.missing) > 0 || r.counted == 0 {
			continue
		}
		if row.logs-r.rows[leader].logs > r.noise {
			leader = i
		}
		row.cells[1].Text = strconv.Itoa(leader + 1)
		row.cells[2].Text = runs.Number(math.Exp(row.logs/float64(r.counted))) + "×"
	}
}

// unplaced says which rows have no place, and why.
func (r *ranking) unplaced() string {
	var sets []string
	for _, rows := range runs.By(r.rows, func(row *ranked) string { return strings.Join(row.missing, "; ") }) {
		var names []string
		for _, row := range rows {
			names = append(names, row.cells[0].Text)
		}
		if missing := rows[0].missing; len(missing) > 0 {
			sets = append(sets, strings.Join(names, ", ")+" (not measured, or failed: "+strings.Join(missing, "; ")+")")
		}
	}
	return list("Without a place: ", sets)
}

// noiseText says what the noise floor is and where it comes from.
func (r *ranking) noiseText() string {
	const use = "Rows that are no further apart share a place, and ≈ marks what is that near to the best."
	if len(r.in.twice()) == 0 {
		return fmt.Sprintf("Noise floor: not measured, since no configuration was run twice in a block; %s× stands in for it, which is how far three runs of one configuration were apart. "+use,
			runs.Number(runs.Unmeasured))
	}
	var units []string
	for _, m := range measures {
		if !slices.Contains(r.never, m.name()) {
			units = runs.AppendNew(units, fmt.Sprintf("%s× for %s of %s", runs.Number(r.in.floor(m.experiment).Of(m.unit)), m.unit, m.experiment))
		}
	}
	return fmt.Sprintf("Noise floor, from measuring the same twice: %s; %s× for the mean. "+use,
		strings.Join(units, ", "), runs.Number(math.Exp(r.noise/float64(max(1, r.counted)))))
}

// head names the columns. Those in which nothing stands are left out.
func (r *ranking) head() {
	if len(r.rows) == 0 {
		r.Caption = "Nothing was measured over engines and layouts."
		return
	}
	r.Caption = "Engines and layouts, each figure as a multiple of the best in its column; the geometric mean over the columns gives the place."
	r.Ranked, r.Columns = true, append(heads("engine and layout"), figureHeads("place", "mean")...)
	for _, m := range measures {
		at := len(r.Columns)
		if slices.ContainsFunc(r.Rows, func(row []Cell) bool { return row[at].Text != "" }) {
			r.Columns = append(r.Columns, Column{Head: m.head, Numeric: true})
			continue
		}
		for n := range r.Rows {
			r.Rows[n] = slices.Delete(r.Rows[n], at, at+1)
		}
	}
}
