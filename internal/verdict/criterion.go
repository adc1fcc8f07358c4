package verdict

import (
	"fmt"
	"strings"

	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

func below(part, name string, want float64, unit string) Criterion {
	return Criterion{Part: part, Name: name, Op: "<", Want: want, Unit: unit, Verdict: Unknown}
}

func above(part, name string, want float64, unit string) Criterion {
	return Criterion{Part: part, Name: name, Op: ">", Want: want, Unit: unit, Verdict: Unknown}
}

// atLeast is above, or just there.
func atLeast(part, name string, want float64, unit string) Criterion {
	return Criterion{Part: part, Name: name, Op: "≥", Want: want, Unit: unit, Verdict: Unknown}
}

// failing says where failure begins, when that is apart from the target.
func (c Criterion) failing(at float64) Criterion {
	c.Failure = &at
	return c
}

// at says at which scale the figure is wanted.
func (c Criterion) at(scale float64) Criterion {
	c.At = scale
	return c
}

// judge completes a criterion with evidence. It answers only where the whole
// interval does, and a good figure of a size below the one that is asked for, or
// a bad one under more than the load, is no answer.
func (c Criterion) judge(e evidence) Criterion {
	c = c.from(e)
	if e.doubt != "" {
		return c.unknown("%s", e.doubt)
	}
	c = c.side(e.Estimate)
	switch {
	case c.Verdict == Unknown:
		return c.again()
	case c.Verdict == Pass && e.weak != "":
		return c.unknown("%s", e.weak)
	case c.Verdict == Fail && e.hard != "":
		return c.unknown("%s", e.hard)
	case e.scale >= c.At:
		return c
	case c.Verdict == Pass:
		return c.unknown("measured at scale %s only", scaleText(e))
	}
	c.Extrapolated = true
	return c.note("measured at scale %s, and larger data make it no better", scaleText(e))
}

// side says on which side of what is wanted an interval is.
func (c Criterion) side(e stat.Estimate) Criterion {
	c.Got, c.Low, c.High = &e.Value, &e.Low, &e.High
	if e.Value > 0 && c.Want > 0 {
		margin := c.Want / e.Value
		if c.Op != "<" {
			margin = e.Value / c.Want
		}
		c.Margin = &margin
	}
	low, high := better(c.Op, e.Low, c.Want), better(c.Op, e.High, c.Want)
	switch {
	case low != high:
		return c.unknown("%s includes the limit", interval(e, c.Unit))
	case low:
		c.Verdict = Pass
		return c
	}
	c.Verdict = Fail
	if c.Failure != nil && !better(c.Op, *c.Failure, e.Value) {
		c = c.note("misses the target, but is on the good side of %s %s, where failure begins", runs.Number(*c.Failure), c.Unit)
	}
	return c
}

// again asks for the repetitions that give a median an interval of its own.
func (c Criterion) again() Criterion {
	if c.Command != "" && c.Repetitions < enoughRuns {
		c.Command += fmt.Sprintf(" --repeat %d", enoughRuns)
	}
	return c
}

// crashed completes a criterion whose run ended in an error: the engine did not
// hold what was asked of it.
func (c Criterion) crashed(g *runs.Group) Criterion {
	first, _, _ := strings.Cut(g.Records[0].Error, "\n")
	c = c.from(evidence{group: g}).note("the run ended in an error: %s", first)
	c.Verdict = Fail
	return c
}

// unknown completes a criterion that records do not answer.
func (c Criterion) unknown(format string, args ...any) Criterion {
	c.Verdict = Unknown
	return c.note(format, args...)
}

func (c Criterion) from(e evidence) Criterion {
	c.Source, c.Scale, c.Repetitions = e.group.Key(), e.group.Get("scale"), e.N
	if !isDurable(e.group) {
		c = c.note("durability %s: no durable run", e.group.Get("durability"))
	}
	return c
}

func (c Criterion) note(format string, args ...any) Criterion {
	text := fmt.Sprintf(format, args...)
	if c.Note != "" {
		text = c.Note + "; " + text
	}
	c.Note = text
	return c
}

// all joins the answers to criteria that must all hold.
func all(criteria []Criterion) Outcome {
	outcome := Pass
	for _, c := range criteria {
		switch c.Verdict {
		case Fail:
			return Fail
		case Unknown:
			outcome = Unknown
		}
	}
	return outcome
}

func better(op string, a, b float64) bool {
	switch op {
	case "<":
		return a < b
	case "≥":
		return a >= b
	}
	return a > b
}

// interval writes an interval, unless it is so wide that its ends mean nothing.
func interval(e stat.Estimate, unit string) string {
	if e.High > 1e4*e.Low {
		return "an interval wider than a factor of 10,000"
	}
	return fmt.Sprintf("the interval %s–%s %s", runs.Number(e.Low), runs.Number(e.High), unit)
}
