package verdict

import (
	"fmt"
	"strings"

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

// judge completes a criterion with a measured value.
func (c Criterion) judge(got float64, from *runs.Group) Criterion {
	c.Got = &got
	c = c.from(from)
	if n := commits(from); strings.Contains(c.Name, "p99") && n > 0 && n < enough {
		c = c.note("p99 of %d commits, so of the slowest one", n)
	}
	c.Verdict = Fail
	if better(c.Op, got, c.Want) {
		c.Verdict = Pass
	}
	if got > 0 && c.Want > 0 {
		margin := c.Want / got
		if c.Op != "<" {
			margin = got / c.Want
		}
		c.Margin = &margin
	}
	if c.Verdict == Fail && c.Failure != nil && !better(c.Op, *c.Failure, got) {
		c = c.note("misses the target, but is on the good side of %s %s, where failure begins", number(*c.Failure), c.Unit)
	}
	return c
}

// enough is how many commits a p99 needs to be something else than the longest.
const enough = 100

// commits is how many commits the first run of a group has, if it tells.
func commits(g *runs.Group) int64 {
	good := g.Good()
	if len(good) == 0 {
		return 0
	}
	if d := good[0].Latency("commit"); d != nil {
		return d.Count
	}
	return 0
}

// crashed completes a criterion whose run ended in an error: the engine did not
// hold what was asked of it.
func (c Criterion) crashed(g *runs.Group) Criterion {
	c.Verdict = Fail
	return c.from(g).note("the run ended in an error: %s", g.Records[0].Error)
}

// unknown completes a criterion that no record answers.
func (c Criterion) unknown(command, format string, args ...any) Criterion {
	c.Verdict = Unknown
	c.Command = command
	return c.note(format, args...)
}

func (c Criterion) from(g *runs.Group) Criterion {
	c.Source = g.Key()
	c.Scale = g.Get("scale")
	if !isDurable(g) {
		c = c.note("durability %s: no durable run", g.Get("durability"))
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

// number writes a figure with three digits, thousands apart.
func number(v float64) string {
	text := fmt.Sprintf("%.3g", v)
	if v >= 100 || v <= -100 {
		text = fmt.Sprintf("%.0f", v)
	}
	if strings.ContainsAny(text, ".e") {
		return text
	}
	digits := strings.TrimPrefix(text, "-")
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}
