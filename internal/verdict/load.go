package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// nearly is how much of a rate counts as having been delivered: a run that
// ends between two commits has a little less.
const nearly = 0.95

// load is what was asked of a run at once, or what it did.
type load struct{ writes, reads float64 } // rows/s, reads/s; 0: none, or as many as go

// String is the load as the documents write it.
func (l load) String() string {
	return fmt.Sprintf("%s rows/s + %s reads/s", runs.Number(l.writes), runs.Number(l.reads))
}

func asked(g *runs.Group) (l load) {
	l.writes, _ = strconv.ParseFloat(g.Get("rate"), 64)
	l.reads, _ = strconv.ParseFloat(g.Get("qps"), 64)
	switch g.Experiment {
	case "D5":
		l.writes = treeRate
	case "E3": // so many blocks a second, whatever is in them
		l.writes = delivered(g).writes
	}
	return l
}

func delivered(g *runs.Group) (l load) {
	l.writes, _ = g.Median(runs.Measure{Unit: rowsUnit})
	if g.Get("qps") != "" { // else that of commits
		l.reads, _ = g.Median(runs.Measure{Unit: readsUnit})
	}
	if highest, ok := g.Median(runs.Measure{Unit: ceilingUnit}); ok {
		l.reads = min(l.reads, highest)
	}
	return l
}

func didDeliver(g *runs.Group) string { return "delivered " + delivered(g).String() }

// under keeps the runs of experiments that were asked for the load. Those that
// searched for a ceiling were not.
func (l load) under(experiments ...string) func(*runs.Group) bool {
	return func(g *runs.Group) bool { return of(experiments...)(g) && !isCeiling(g) && asked(g) == l }
}

// offers are the loads that runs of experiments were asked for.
func offers(groups []*runs.Group, experiments ...string) []load {
	var list []load
	for _, g := range runs.Where(groups, func(g *runs.Group) bool { return asked(g).under(experiments...)(g) }) {
		list = runs.AppendNew(list, asked(g))
	}
	return list
}

// beside are questions about commits beside each load that was offered with reads.
func (p *pair) beside() []question {
	var list []question
	for _, o := range offers(p.groups, "D4") {
		name := "commit p99 where " + o.String() + " were asked"
		list = append(list, question{PartCombined, name, "<", blockTime, "ms", 1, "D4", from(besides, o.under("D4")), 0})
	}
	return list
}

// carried answers whether a load is carried. A run that delivered all of it with
// commits in time does; one that was asked for no more rows beside the same reads, or
// beside none, and failed at that tells that it does not.
func (p *pair) carried(name string, want load, is property) Criterion {
	q := question{PartV1, name, "≥", 100 * nearly, "% of the load", v1Scale, v1Runs, nil, is}
	answers := []Criterion{p.criterion(q).say(Unknown, "no run was asked for this load")}
	for _, o := range offers(p.groups, v1Loaded...) {
		q.from = from(part(want, o), o.under(v1Loaded...))
		answers = append(answers, p.answer(q))
	}
	for _, v := range []Outcome{Pass, Fail} {
		if i := slices.IndexFunc(answers, func(c Criterion) bool { return c.Verdict == v }); i >= 0 {
			return answers[i]
		}
	}
	return answers[len(answers)-1]
}

// part is how much of a load is delivered by runs that were asked for another one, in
// percent of what is in both.
func part(want, was load) figure {
	both := load{min(cmp.Or(was.writes, want.writes), want.writes), min(was.reads, want.reads)}
	f := figure{unit: rowsUnit, under: true, load: true, inTime: true, note: didDeliver}
	if both != want {
		f.weak = "asked for less"
	}
	if was.writes > want.writes || was.reads > 0 && was.reads != want.reads {
		f.hard = "asked for other rates"
	}
	f.of = func(r *result.Record) (float64, bool) {
		writes, ok := r.Metric(rowsUnit)
		part := writes / both.writes
		if both.reads > 0 {
			reads, _ := r.Metric(readsUnit)
			part = min(part, reads/both.reads)
		}
		return 100 * part, ok
	}
	return f
}
