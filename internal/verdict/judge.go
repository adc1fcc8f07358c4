package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

const (
	// enoughBlocks are those whose median has a 95 % interval.
	enoughBlocks = 6

	// enoughSizes are those from which a line has an interval that means anything.
	enoughSizes = 4
)

func (p *pair) assess() Assessment {
	a := Assessment{Engine: p.engine, Layout: p.layout}
	for _, q := range slices.Concat(questions, p.beside(), v1Reading) {
		a.Criteria = append(a.Criteria, p.answer(q))
	}
	for _, l := range v1Loads {
		a.Criteria = append(a.Criteria, p.carried(l.name, l.load, l.is))
	}
	v1 := a.where(func(c *Criterion) bool { return c.Part == PartV1 && c.Decides })
	a.V1 = map[Outcome]Decision{Pass: Go, Fail: NoGo, Unknown: Undecided}[all(v1)]
	a.Meets = all(a.decisive())
	return a
}

// answer judges a question by the evidence at the largest scale that can be
// judged; without any it stays unknown, with what is known of why.
func (p *pair) answer(q question) Criterion {
	points := atSize(p.curve(q.from), q.at)
	if len(points) == 0 {
		c := p.criterion(q)
		for _, id := range strings.Fields(q.run) {
			if ended := runs.Of(p.ended, id); len(ended) > 0 {
				c = c.note("the experiment ended early: " + ended[0].Records[0].Error)
			}
		}
		return c.say(Unknown, "not measured")
	}
	if q.is&trend != 0 {
		return p.extrapolate(q, points)
	}
	e := points[len(points)-1]
	for _, o := range slices.Backward(points) {
		if !e.failed && !e.judgeable() && o.judgeable() {
			e = o
		}
	}
	for _, o := range points {
		if o.judgeable() && o.scale < e.scale && e.scale < q.at && better(q.op, e.Median, o.Median) {
			e.hard = "it got no worse with size"
		}
	}
	return p.judge(q, e)
}

// atSize leaves out what was measured of more data than is asked about, where there is
// enough without it: what is bad there need not be at the size itself.
func atSize(points []evidence, at float64) []evidence {
	for i, e := range points {
		if at > 0 && e.scale >= at && e.judgeable() {
			return points[:i+1]
		}
	}
	return points
}

// larger is how many times the size that is asked for is still that size: 621,000 entities
// are judged by 800,000.
const larger = 2

// extrapolate judges a latency by a power law through what was measured at smaller
// scales under one load, unless a size that an engine could not hold, or was too
// slow at, is an answer about all above it. The law never gives less than the
// largest of these: larger data make nothing faster, what looks so is noise.
func (p *pair) extrapolate(q question, points []evidence) Criterion {
	var x, y, loads []float64
	for _, e := range slices.Backward(points) {
		if c := p.judge(q, e); c.Verdict == Fail || e.scale >= q.at && e.judgeable() {
			return c
		}
		if e.judgeable() && e.scale > 0 && e.Median > 0 {
			x, y, loads = append(x, e.scale), append(y, e.Median), append(loads, delivered(e.group).writes)
		}
	}
	c := p.judge(q, points[len(points)-1])
	if len(x) < enoughSizes {
		return c.note(fmt.Sprintf("%d sizes that can be judged, a trend needs %d", len(x), enoughSizes))
	}
	if low, high := slices.Min(loads), slices.Max(loads); low < nearly*high {
		return c.note(fmt.Sprintf("no trend: the loads at its sizes were %s to %s rows/s", runs.Number(low), runs.Number(high)))
	}
	law, err := stat.FitPowerLaw(x, y)
	if err != nil {
		return c.note("no trend: " + err.Error())
	}
	there, floor := law.At(q.at), slices.Max(y)
	there.Median, there.Low, there.High = max(there.Median, floor), max(there.Low, floor), max(there.High, floor)
	c = p.criterion(q).found(points[len(points)-1]).side(there)
	c.Extrapolated = true
	return c.note(fmt.Sprintf("extrapolated %s× beyond scale %g, grows with scale^%.2f over %d sizes, %s",
		runs.Number(q.at/x[0]), x[0], law.Exponent, len(x), interval(there, q.unit)))
}

// criterion is a question without an answer.
func (p *pair) criterion(q question) Criterion {
	return Criterion{
		Part: q.part, Name: q.name, Op: q.op, Want: q.want, Unit: q.unit, At: q.at, Decides: q.is&decides != 0,
		Verdict: Unknown, Command: Command(q.run, p.engine, p.layout, math.Ceil(10*q.at)/10),
	}
}

// judge answers a question by evidence. It answers only where the whole interval
// does, and a good figure of a size below the one that is asked for, or a bad one
// under more than the load, is no answer.
func (p *pair) judge(q question, e evidence) Criterion {
	c := p.criterion(q).found(e)
	switch {
	case e.failed: // the engine did not hold what was asked of it
		first, _, _ := strings.Cut(e.group.Records[0].Error, "\n")
		if c = c.say(Fail, "the run ended in an error: "+first); e.hard != "" {
			c = c.say(Unknown, e.hard)
		} else if e.beyond(c.At) {
			c = c.say(Unknown, "at more than the size that is asked about")
		}
		return c
	case e.doubt == untold:
		c.Command = ""
		return c.say(Unknown, e.doubt)
	case e.missed != "":
		c = c.say(Fail, e.missed)
	case e.doubt != "":
		return c.say(Unknown, e.doubt).note(e.note)
	default:
		c = c.side(e.Summary).note(e.note)
	}
	size := "measured at scale unknown"
	if e.scale > 0 {
		size = fmt.Sprintf("measured at scale %g", e.scale)
	}
	switch {
	case c.Verdict == Pass && e.weak != "":
		return c.say(Unknown, e.weak)
	case c.Verdict == Fail && e.hard != "":
		return c.say(Unknown, e.hard)
	case c.Verdict == Fail && e.beyond(c.At):
		return c.say(Unknown, size+", more than is asked about")
	case c.Verdict == Unknown || e.scale >= c.At:
		return c
	case c.Verdict == Pass:
		return c.say(Unknown, size+" only")
	}
	c.Extrapolated = true
	return c.note(size + ", and larger data make it no better")
}

// found says what was measured and where.
func (c Criterion) found(e evidence) Criterion {
	c.Source, c.Scale, c.Repetitions = e.group.Key(), e.group.Get("scale"), e.N
	if e.N > 0 {
		c = c.got(e.Median)
	}
	if e.N >= enoughBlocks { // more of them may tell
		c.Command = strings.Replace(c.Command, blocks(enoughBlocks), blocks(2*e.N), 1)
	}
	if !isDurable(e.group) {
		c = c.note("durability " + e.group.Get("durability") + ": no durable run")
	}
	return c
}

func (c Criterion) got(v float64) Criterion {
	c.Got, c.Margin = &v, nil
	if v > 0 && c.Want > 0 {
		margin := v / c.Want
		if c.Op == "<" {
			margin = c.Want / v
		}
		c.Margin = &margin
	}
	return c
}

// side says on which side of what is wanted an interval is.
func (c Criterion) side(s stat.Summary) Criterion {
	c = c.got(s.Median)
	c.Low, c.High = &s.Low, &s.High
	low, high := better(c.Op, s.Low, c.Want), better(c.Op, s.High, c.Want)
	switch {
	case low != high:
		return c.say(Unknown, interval(s, c.Unit)+" includes the limit")
	case low:
		return c.say(Pass, "")
	}
	return c.say(Fail, "")
}

// say answers, with why.
func (c Criterion) say(verdict Outcome, why string) Criterion {
	c.Verdict = verdict
	return c.note(why)
}

func (c Criterion) note(text string) Criterion {
	if c.Note != "" && text != "" {
		text = c.Note + "; " + text
	}
	c.Note = cmp.Or(text, c.Note)
	return c
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
