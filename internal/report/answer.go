package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// answer says in words what an experiment's main figures come to: how engines stand to
// the best and layouts to the first, as geometric means over what else was varied.
// What is inside the noise is not called a difference.
func answer(in *Input, id string) Table {
	x, floor := in.experiment(id), in.floor()
	var notes []string
	for unit := range strings.FieldsSeq(x.metrics) {
		a := comparison{unit: unit, floor: floor, values: map[who]map[string]float64{}}
		for _, g := range x.groups {
			a.add(g)
		}
		if parts := a.parts(); len(parts) > 0 {
			notes = append(notes, fmt.Sprintf("- %s, %d settings: %s.", unit, len(a.settings), strings.Join(parts, "; ")))
		}
	}
	if len(notes) == 0 {
		notes = []string{"Nothing to compare: see the table."}
	}
	return Table{Notes: notes}
}

// who is an engine with a layout.
type who struct{ engine, layout string }

// comparison is a figure of engines and layouts in each setting of the rest.
type comparison struct {
	unit                       string
	floor                      runs.Floor
	engines, layouts, settings []string
	values                     map[who]map[string]float64 // by setting
}

func (a *comparison) add(g *runs.Group) {
	v, ok := g.Median(runs.Measure{Unit: a.unit})
	if !ok || v <= 0 || result.Better(a.unit) == result.Neutral {
		return
	}
	of, setting := who{g.Get("engine"), g.Get("layout")}, g.Name+settingOf(g, nil)
	if a.values[of] == nil {
		a.values[of] = map[string]float64{}
	}
	a.values[of][setting] = v
	a.engines, a.layouts, a.settings = runs.AppendNew(a.engines, of.engine), runs.AppendNew(a.layouts, of.layout), runs.AppendNew(a.settings, setting)
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

// ratio is the geometric mean of what one has of another's, over the n settings that
// both have.
func (a *comparison) ratio(of, to who) (ratio float64, n int) {
	sum := 0.0
	for _, setting := range a.settings {
		v, ok := a.values[of][setting]
		if base, both := a.values[to][setting]; ok && both {
			sum, n = sum+math.Log(v/base), n+1
		}
	}
	return math.Exp(sum / float64(n)), n
}

// parts compares the engines with each layout, and the layouts on each engine.
func (a *comparison) parts() []string {
	var parts []string
	for _, layout := range a.layouts {
		of := func(engine string) who { return who{engine, layout} }
		best := slices.MinFunc(a.engines, func(e, best string) int {
			if r, n := a.ratio(of(e), of(best)); n > 0 {
				return cmp.Compare(1, r) * int(result.Better(a.unit))
			}
			return len(a.values[of(best)]) - len(a.values[of(e)])
		})
		label := best + " first, "
		if layout != "" {
			label = "`" + layout + "`: " + label
		}
		parts = append(parts, a.times(label, layout, func(string) who { return of(best) }))
	}
	for _, layout := range a.layouts {
		first := a.layouts[0]
		parts = append(parts, a.times(fmt.Sprintf("`%s` to `%s`: ", layout, first), layout, func(engine string) who { return who{engine, first} }))
	}
	return nonempty(parts...)
}

// times writes what engines with a layout have of others' figures; "" for nothing.
func (a *comparison) times(label, layout string, to func(engine string) who) string {
	var list []string
	for _, engine := range a.engines {
		of := who{engine, layout}
		r, n := a.ratio(of, to(engine))
		if n == 0 || of == to(engine) {
			continue
		}
		text := engine + " " + runs.Number(r) + "x"
		if a.floor.Inside(a.unit, r, 1) {
			text += " (inside the noise)"
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return ""
	}
	return label + strings.Join(list, ", ")
}
