package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// answer says in words what an experiment's main figures come to: how engines stand to
// the best and layouts to the first, as geometric means over what else was varied.
// What is inside the noise is not called a difference.
func answer(in *Input, id string) Table {
	x := in.experiment(id)
	floor := runs.Noise(in.Results.Records)
	var notes []string
	for _, unit := range strings.Fields(x.metrics) {
		a := comparison{unit: unit, floor: floor, values: make(map[[3]string]float64)}
		for _, g := range x.groups {
			a.add(g)
		}
		if text := a.text(); text != "" {
			notes = append(notes, "- "+text)
		}
	}
	if len(notes) == 0 {
		notes = []string{"Nothing to compare: see the table."}
	}
	return Table{Notes: notes}
}

// comparison is a figure by engine and layout in each setting of the rest.
type comparison struct {
	unit     string
	floor    runs.Floor
	engines  []string
	layouts  []string
	settings []string
	values   map[[3]string]float64
}

func (a *comparison) add(g *runs.Group) {
	v, ok := g.Median(runs.Measure{Unit: a.unit})
	if !ok || v <= 0 || result.Better(a.unit) == result.Neutral {
		return
	}
	setting := g.Name
	for _, p := range g.Config {
		if p.Key != "engine" && p.Key != "layout" {
			setting += " " + p.Key + "=" + p.Value
		}
	}
	at := [3]string{g.Get("engine"), g.Get("layout"), setting}
	a.values[at] = v
	a.engines, a.layouts, a.settings = appendNew(a.engines, at[0]), appendNew(a.layouts, at[1]), appendNew(a.settings, at[2])
}

// ratio is the geometric mean of what one engine and layout has of another's, over the
// n settings that both have.
func (a *comparison) ratio(engine, layout, toEngine, toLayout string) (ratio float64, n int) {
	sum := 0.0
	for _, setting := range a.settings {
		v, ok := a.values[[3]string{engine, layout, setting}]
		to, both := a.values[[3]string{toEngine, toLayout, setting}]
		if ok && both {
			sum += math.Log(v / to)
			n++
		}
	}
	return math.Exp(sum / float64(n)), n
}

func (a *comparison) text() string {
	var parts []string
	for _, layout := range a.layouts {
		if text := a.enginesOf(layout); text != "" {
			parts = append(parts, text)
		}
	}
	for _, layout := range a.layouts[min(1, len(a.layouts)):] {
		var list []string
		for _, engine := range a.engines {
			if r, n := a.ratio(engine, layout, engine, a.layouts[0]); n > 0 {
				list = append(list, engine+" "+a.times(r))
			}
		}
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("`%s` to `%s`: %s", layout, a.layouts[0], strings.Join(list, ", ")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, %d settings: %s.", a.unit, len(a.settings), strings.Join(parts, "; "))
}

// enginesOf names the best engine with a layout, and what the others have of its.
func (a *comparison) enginesOf(layout string) string {
	best := ""
	for _, engine := range a.engines {
		if r, n := a.ratio(engine, layout, best, layout); best == "" || n > 0 && (r-1)*float64(result.Better(a.unit)) > 0 {
			if _, has := a.ratio(engine, layout, engine, layout); has > 0 {
				best = engine
			}
		}
	}
	var list []string
	for _, engine := range a.engines {
		if r, n := a.ratio(engine, layout, best, layout); n > 0 && engine != best {
			list = append(list, engine+" "+a.times(r))
		}
	}
	if len(list) == 0 {
		return ""
	}
	if layout != "" {
		layout = "`" + layout + "`: "
	}
	return layout + best + " first, " + strings.Join(list, ", ")
}

// times writes a ratio, or that it is none.
func (a *comparison) times(ratio float64) string {
	if a.floor.Inside(a.unit, ratio, 1) {
		return Number(ratio) + "x (inside the noise)"
	}
	return Number(ratio) + "x"
}
