package verdict

import (
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// Limits of V1, and entities at scale 1 of the base profile and of the data
// centres.
const (
	v1Entities     = 621_000.0 // of the data centre
	baseEntities   = 800_000.0
	centreEntities = 1_200_000.0

	v1MinWrites = 10_000.0
	v1MaxWrites = 50_000.0 // rows/s
	v1MinReads  = 1_000.0
	v1MaxReads  = 10_000.0 // reads/s
)

// v1Runs are what V1 is judged from.
const v1Runs = "C1 D1 D4"

// v1 is the go/no-go for the data centre, the upper end of its range last.
func (p *pair) v1() []Criterion {
	criteria := []Criterion{p.v1Load("10K rows/s with 1K reads/s", load{v1MinWrites, v1MinReads})}
	for _, mix := range []string{"A", "B", "C"} {
		criteria = append(criteria, p.v1Reads(mix))
	}
	return append(criteria, p.v1Load("50K rows/s with 10K reads/s", load{v1MaxWrites, v1MaxReads}))
}

// required are the criteria of the lower end of V1's range.
func required(v1 []Criterion) []Criterion { return v1[:len(v1)-1] }

func decide(v1 []Criterion) Decision {
	return map[Outcome]Decision{Pass: Go, Fail: NoGo, Unknown: Undecided}[all(required(v1))]
}

// v1Reads is how many reads of a mix one client gets.
func (p *pair) v1Reads(mix string) Criterion {
	c := atLeast(PartV1, "reads/s of mix "+mix+" with one client", v1MinReads, "reads/s").at(v1Entities / baseEntities)
	alone := curve(p.groups, readsPerSecond, func(g *runs.Group) bool {
		return g.Experiment == "C1" && g.Get("mix") == mix && g.Get("clients") == "1"
	})
	grown := curve(p.groups, runs.Measure{Unit: "qps-" + mix}, of("D5"))
	return p.answer(p.measure(c, v1Runs), "C1", bySize(slices.Concat(alone, grown)))
}

// v1Load asks whether an engine carries a load. A run that delivered all of it
// with commits in time does; one that was asked for it and did not, or writes
// alone that are slower, tell that it does not.
func (p *pair) v1Load(name string, want load) Criterion {
	c := p.measure(atLeast(PartV1, name, nearly, "of the load").at(v1Entities/baseEntities), v1Runs)
	var answers []Criterion
	for _, g := range runs.Where(p.groups, of("D4", "E3")) {
		if answer, ok := c.carried(g, want); ok {
			answers = append(answers, answer)
		}
	}
	// More than it writes without reads it will not write with them.
	alone := curve(p.groups, rowsPerSecond, func(g *runs.Group) bool {
		return g.Experiment == "D1" && asked(g).writes == 0
	})
	if n := len(alone); n > 0 && !alone[n-1].failed {
		answer := c.judge(share(alone[n-1].group, load{writes: want.writes}))
		if answer.Verdict == Fail {
			answers = append(answers, answer.note("%s rows/s with no reads at all", runs.Number(alone[n-1].Value)))
		}
	}
	for _, v := range []Outcome{Pass, Fail, Unknown} {
		if i := slices.IndexFunc(answers, func(c Criterion) bool { return c.Verdict == v }); i >= 0 {
			return answers[i]
		}
	}
	return c.unknown("no run was asked for this load")
}

// carried judges a load by one run; false when the run tells nothing of it.
func (c Criterion) carried(g *runs.Group, want load) (Criterion, bool) {
	e, was := share(g, want), asked(g)
	switch {
	case e.failed:
		return c.crashed(g), was.writes <= want.writes && was.reads <= want.reads
	case was.reads != want.reads && e.Value < nearly:
		return c, false
	}
	c = c.judge(e).did(g)
	slow := below("", "", blockTime, "ms").judge(look(g, p99))
	if c.Verdict == Pass && slow.Verdict != Pass {
		c = c.unknown("its commits: p99 %s %s", slow.Measured(), slow.Note)
		if slow.Verdict == Fail && was == want {
			c.Verdict = Fail
		}
	}
	return c, true
}

// share is the part of a load that a run delivered. Where it was asked for fewer
// writes, only the reads that it missed say something.
func share(g *runs.Group, want load) evidence {
	was, got := asked(g), delivered(g)
	fewer := want.reads > 0 && was.writes > 0 && was.writes < want.writes
	floor := 1.0
	if was == (load{}) {
		floor = noise
	}
	e := take(g, floor, func(r *result.Record) (float64, bool) {
		writes, ok := rowsPerSecond.Of(r)
		part := writes / want.writes
		if want.reads > 0 {
			reads, _ := readsPerSecond.Of(r)
			if part = min(part, reads/want.reads); fewer {
				part = reads / want.reads
			}
		}
		return part, ok
	})
	if fewer {
		e.weak = "asked for fewer rows/s"
	}
	if was.writes > 0 && got.writes > was.writes/nearly {
		e.hard = "more rows/s than asked for"
	}
	return e
}
