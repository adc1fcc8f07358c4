package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

const (
	// enoughCommits are those that a p99 is judged from: ten were slower.
	enoughCommits = 1000

	// enoughReads are those that a rate of reads is taken from.
	enoughReads = 100

	// enoughRuns are the repetitions whose median has a 95 % interval.
	enoughRuns = 6

	// noise is the floor for fewer repetitions: three runs of one configuration
	// on one machine were up to that factor apart.
	noise = 2.2

	// nearly is how much of a rate counts as having been delivered: a run that
	// ends between two commits has a little less.
	nearly = 0.95
)

// evidence is what a group of records says about a figure: the median over its
// repetitions with an interval.
type evidence struct {
	group *runs.Group
	scale float64 // of the base profile; 0: not stated
	stat.Estimate

	failed bool   // the run ended in an error: there is no value
	doubt  string // why the value cannot be judged
	weak   string // why a good value proves nothing
	hard   string // why a bad value proves nothing
}

// look takes a figure from a group, with the doubts about it.
func look(g *runs.Group, m runs.Measure) evidence {
	floor := noise
	if m == rowsPerSecond && asked(g).writes > 0 {
		floor = 1 // is what was asked for, or it was not delivered
	}
	e := take(g, floor, m.Of)
	kind, isMix := strings.CutPrefix(m.Unit, "qps-")
	switch n := g.Count(m); {
	case e.failed:
	case m == p99 && n < enoughCommits:
		e.doubt = fmt.Sprintf("%s commits, a p99 needs %s", runs.Number(float64(n)), runs.Number(enoughCommits))
	case m == longest && n < enoughCommits:
		e.weak = fmt.Sprintf("the longest of %s commits, of %s it may be longer", runs.Number(float64(n)), runs.Number(enoughCommits))
	case m == readsPerSecond:
		e.ofReads("all")
	case isMix:
		e.ofReads("mix-" + kind)
	}
	if strings.HasSuffix(m.Unit, "-ms") {
		e.underLoad()
	}
	return e
}

// rank is higher for evidence that tells more.
func (e *evidence) rank() int {
	switch {
	case e.failed:
		return 0
	case e.doubt != "":
		return 1
	}
	return 2
}

// ofReads doubts a rate of too few reads.
func (e *evidence) ofReads(kind string) {
	if n := e.group.Count(runs.Measure{Unit: "p50-ms", Kind: kind}); n < enoughReads {
		e.doubt = fmt.Sprintf("a rate of %d reads, it needs %d", n, enoughReads)
	}
}

// take takes from a group what f finds in its records. With too few repetitions
// for an interval the floor is the factor that chance may make of it.
func take(g *runs.Group, floor float64, f func(*result.Record) (float64, bool)) evidence {
	e := evidence{group: g, scale: scaleOf(g), failed: g.Failed()}
	var values []float64
	for _, r := range g.Good() {
		if v, ok := f(r); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		e.doubt = "the run does not tell it"
		return e
	}
	s := stat.Summarize(values)
	e.Estimate = stat.Estimate{Value: s.Median, Low: s.Low, High: s.High, N: s.N}
	if !s.Bounded() {
		e.Low = min(s.Median/floor, slices.Min(values))
		e.High = max(s.Median*floor, slices.Max(values))
	}
	return e
}

// scaleOf is the size as a multiple of the base profile's entities.
func scaleOf(g *runs.Group) float64 {
	scale, _ := g.Scale()
	if g.Experiment == "E3" { // is of data centres
		scale *= centreEntities / baseEntities
	}
	return scale
}

// load is what was asked of a run at once, or what it did.
type load struct{ writes, reads float64 } // rows/s, reads/s; 0: none, or as many as go

// String is the load as the documents write it.
func (l load) String() string {
	return fmt.Sprintf("%s rows/s + %s reads/s", runs.Number(l.writes), runs.Number(l.reads))
}

func asked(g *runs.Group) (l load) {
	l.writes, _ = strconv.ParseFloat(g.Get("rate"), 64)
	l.reads, _ = strconv.ParseFloat(g.Get("qps"), 64)
	if g.Experiment == "D5" {
		l.writes = treeRate
	}
	return l
}

func delivered(g *runs.Group) (l load) {
	l.writes, _ = g.Median(rowsPerSecond)
	if g.Get("qps") != "" { // else that of commits
		l.reads, _ = g.Median(readsPerSecond)
	}
	if highest, ok := g.Median(ceiling); ok {
		l.reads = min(l.reads, highest)
	}
	return l
}

// underLoad doubts a latency of a run that did not get the load it was asked: under
// less it is too good, and under more too bad.
func (e *evidence) underLoad() {
	want, got := asked(e.group), delivered(e.group)
	switch {
	case e.failed || e.doubt != "":
	case got.writes < nearly*want.writes || got.reads < nearly*want.reads:
		e.doubt = fmt.Sprintf("delivered %s of %s", got, want)
	case want.writes > 0 && got.writes > want.writes/nearly:
		e.hard = fmt.Sprintf("delivered %s, more than the %s asked for", got, want)
	}
}

func scaleText(e evidence) string {
	if e.scale == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%g", e.scale)
}
