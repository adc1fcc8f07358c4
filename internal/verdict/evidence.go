package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// pair is an engine with a layout and what was measured of them.
type pair struct {
	engine, layout string
	groups         []*runs.Group
	ended          []*runs.Group         // experiments whose process ended before it had measured all
	noise          map[string]runs.Floor // of experiments
}

// newPair takes the durable runs. Where an experiment has none it takes the
// others, and the criteria say which.
func newPair(groups []*runs.Group, engine, layout string, noise map[string]runs.Floor) *pair {
	p := &pair{engine: engine, layout: layout, noise: noise}
	own := runs.Where(groups, func(g *runs.Group) bool { return g.Get("engine") == engine })
	p.ended = runs.Where(own, func(g *runs.Group) bool { return runs.End(g.Records[0]) })
	own = runs.Where(own, func(g *runs.Group) bool { return g.Get("layout") == layout })
	for _, id := range judged {
		of := runs.Of(own, id)
		if durable := runs.Where(of, isDurable); len(durable) > 0 {
			of = durable
		}
		p.groups = append(p.groups, of...)
	}
	return p
}

func isDurable(g *runs.Group) bool {
	d := g.Get("durability")
	return d == "" || d == "durable"
}

// evidence is what a group of records says about a figure: the median over its
// repetitions with an interval.
type evidence struct {
	group *runs.Group
	scale float64 // of the base profile; 0: not stated
	stat.Summary
	note string

	failed bool   // the run ended in an error: there is no value
	missed string // what of the load was not delivered, so that the value does not matter
	doubt  string // why the value cannot be judged
	weak   string // why a good value proves nothing
	hard   string // why a bad value proves nothing
}

// rank is higher for evidence that tells more; 2 is an answer.
func (e *evidence) rank() int {
	switch {
	case e.failed:
		return 0
	case e.doubt != "" && e.missed == "":
		return 1
	}
	return 2
}

func (e *evidence) judgeable() bool { return e.rank() == 2 }

// beyond tells whether it is of so much more data than is asked about that being bad
// proves nothing; at is 0 for any.
func (e *evidence) beyond(at float64) bool { return at > 0 && e.scale > larger*at }

// untold is the doubt that measuring again would not take away.
const untold = "the run does not tell it"

// look takes a figure from a group, with the doubts about it.
func (p *pair) look(g *runs.Group, f figure) evidence {
	e := evidence{group: g, scale: scaleOf(g), failed: g.Failed(), weak: f.weak, hard: f.hard}
	if e.failed {
		return e
	}
	if f.note != nil {
		e.note = f.note(g)
	}
	if n := g.Count(runs.Measure{Unit: "p50-ms", Kind: f.kind}); n < f.needs {
		of := fmt.Sprintf("%s of %s operations (%s)", runs.Number(float64(n)), runs.Number(float64(f.needs)), f.kind)
		if !f.most {
			e.doubt = "it needs more: " + of
			return e
		}
		e.weak = "it may be longer with more: " + of
	}
	var values []float64
	for _, r := range g.Good() {
		if v, ok := f.value(r); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		e.doubt = untold
		return e
	}
	e.Summary = stat.Summarize(values)
	noise, known := p.chance(g, f.unit)
	if !known {
		e.doubt = "noise not measured: nothing of " + g.Experiment + " was measured twice in a block"
	}
	if !e.Bounded() {
		e.Low = min(e.Median/(1+noise), slices.Min(values))
		e.High = max(e.Median*(1+noise), slices.Max(values))
	}
	if f.least > 0 {
		e.Low *= f.least
	}
	if f.under {
		p.underLoad(&e, &f)
	}
	return e
}

// chance returns how far apart two measurements of a figure are on their own; false
// when it is not known. What was asked for is delivered or not, and has none.
func (p *pair) chance(g *runs.Group, unit string) (noise float64, known bool) {
	if unit == "" || unit == rowsUnit && asked(g) != (load{}) {
		return 0, true
	}
	floor, known := p.noise[g.Experiment][unit]
	return floor - 1, known
}

// underLoad doubts a figure of a run that did not get the load it was asked for: under
// less a latency is too good, and under more it is too bad. Where the load is what is
// asked about, less of it has failed, and so have commits that come too late.
func (p *pair) underLoad(e *evidence, f *figure) {
	want, got := asked(e.group), delivered(e.group)
	short := ""
	if got.writes < nearly*want.writes || got.reads < nearly*want.reads {
		short = fmt.Sprintf("delivered %s of %s", got, want)
	}
	if want.writes > 0 && got.writes > want.writes/nearly {
		e.hard = fmt.Sprintf("delivered %s, more than the %s asked for", got, want)
	}
	if f.inTime {
		slow := p.judge(question{op: "<", want: blockTime, unit: "ms"}, p.look(e.group, p99))
		why := "its commits: p99 " + slow.Measured() + " " + slow.Note
		switch slow.Verdict {
		case Fail:
			short = cmp.Or(short, why)
		case Unknown:
			e.weak = cmp.Or(e.weak, why)
		}
	}
	if f.load && e.hard == "" {
		e.missed = short
	} else {
		e.doubt = cmp.Or(e.doubt, short)
	}
}

// scaleOf is the size as a multiple of the base profile's entities.
func scaleOf(g *runs.Group) float64 {
	scale, _ := g.Scale()
	if g.Experiment == "E3" { // is of data centres
		scale *= centreEntities / baseEntities
	}
	return scale
}

// curve returns a figure at each scale, smallest first, from all sources. Of several
// at one size the one counts that tells more, and then the larger one: a rate is what
// an engine can do, a latency what it may take.
func (p *pair) curve(sources []source) []evidence {
	var points []evidence
	for _, s := range sources {
		for _, g := range runs.Where(p.groups, s.keep) {
			points = append(points, p.look(g, s.figure))
		}
	}
	slices.SortStableFunc(points, func(a, b evidence) int {
		return cmp.Or(cmp.Compare(a.scale, b.scale), cmp.Compare(b.rank(), a.rank()), cmp.Compare(b.Median, a.Median))
	})
	return slices.CompactFunc(points, func(a, b evidence) bool { return a.scale == b.scale })
}
