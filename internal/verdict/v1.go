package verdict

import (
	"github.com/varvedb/varve/internal/report/runs"
)

// Entities at scale 1, of the base profile and of the data centres.
const (
	baseEntities   = 800_000
	centreEntities = 1_200_000
)

// v1 is the go/no-go for the data centre.
func (p *pair) v1() []Criterion {
	return []Criterion{
		p.v1Entities(),
		p.v1Load("10K rows/s with 1K reads/s", v1MinWrites, v1MinReads),
		p.v1Load("50K rows/s with 10K reads/s", v1MaxWrites, v1MaxReads),
	}
}

// decide asks only for the lower end of V1's range.
func decide(v1 []Criterion) Decision {
	switch all(v1[:2]) {
	case Pass:
		return Go
	case Fail:
		return NoGo
	}
	return Undecided
}

// v1Entities is whether the loads were measured on enough entities. A smaller
// size says nothing against an engine, so it leaves the question open.
func (p *pair) v1Entities() Criterion {
	c := atLeast(PartV1, "entities held while measured", v1Entities, "entities")
	var most float64
	var from *runs.Group
	for _, l := range p.loads() {
		if n, ok := entities(l.group); ok && n > most {
			most, from = n, l.group
		}
	}
	command := p.command("D1 D4", 1)
	if from == nil {
		return c.unknown(command, "no run with reads beside writes kept its limit, or none states its size")
	}
	c = c.judge(most, from)
	if c.Verdict == Fail {
		c = c.unknown(command, "measured on fewer entities")
	}
	return c
}

func entities(g *runs.Group) (float64, bool) {
	scale, ok := g.Scale()
	if g.Experiment == "E3" {
		return scale * centreEntities, ok
	}
	return scale * baseEntities, ok
}

// loads returns the runs of reads beside writes whose commits kept their limit.
func (p *pair) loads() []load {
	var list []load
	for _, id := range []string{"D4", "E3"} {
		for _, g := range largestOf(runs.Of(p.groups, id)) {
			if latency, ok := g.Median(p99); ok && latency < blockTime {
				list = append(list, loadOf(g))
			}
		}
	}
	return list
}

// v1Load asks how much of a load an engine carries. A run that carried all of it
// answers; else the line between two limits that were measured does: writes
// alone as fast as they go, and the most reads beside paced writes.
func (p *pair) v1Load(name string, writes, reads float64) Criterion {
	c := atLeast(PartV1, name, 1, "of the load")
	for _, l := range p.loads() {
		if share := min(l.writes/writes, l.reads/reads); share >= 1 {
			return c.judge(share, l.group).note("%s", l)
		}
	}
	alone, okAlone := p.largest("D1", rowsPerSecond, ">")
	if okAlone && alone.failed {
		return c.crashed(alone.group)
	}
	// More than it writes without reads it will not write with them.
	if okAlone && alone.value < writes {
		return c.judge(alone.value/writes, alone.group).note("%s rows/s with no reads at all", number(alone.value))
	}
	g := ceilingOf(largestOf(runs.Of(p.groups, "D4")))
	if !okAlone || g == nil || g.Failed() {
		return c.unknown(p.command("D1 D4", 1), "needs writes alone and the ceiling of reads")
	}
	top := loadOf(g)
	c = c.judge(shareOf(alone.value, top, writes, reads), g)
	c.Extrapolated = true
	return c.note("on the line between %s rows/s alone and %s", number(alone.value), top)
}

// shareOf returns the factor by which the wanted load has to be multiplied to lie
// on the line between writes alone and the ceiling, or beside the ceiling. Work
// that does not wait for each other shares the machine along that line at worst.
func shareOf(alone float64, top load, writes, reads float64) float64 {
	if top.reads <= 0 {
		return 0
	}
	share := alone / (writes + max(alone-top.writes, 0)*reads/top.reads)
	return min(share, top.reads/reads)
}
