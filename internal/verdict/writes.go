package verdict

import (
	"math"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// sustained judges a criterion by a figure of D1 at the largest scale measured.
func (p *pair) sustained(c Criterion, m runs.Measure) Criterion {
	points := p.curve("D1", m, c.Op)
	if c.Op == "<" {
		points = p.paced("D1", m)
	}
	if len(points) == 0 {
		return p.answer(c, evidence{}, false, "D1", 0)
	}
	return p.answer(c, points[len(points)-1], true, "D1", 0)
}

// writes are the targets for commits under sustained load.
func (p *pair) writes() []Criterion {
	return []Criterion{
		p.sustained(below(PartWrites, "commit p50", 500, "ms").failing(2000), runs.Measure{Unit: "p50-ms"}),
		p.sustained(below(PartWrites, "commit p99", 1500, "ms").failing(2000), p99),
		p.sustained(below(PartWrites, "commit max", 2000, "ms").failing(3000), runs.Measure{Unit: "max-ms"}),
		p.sustained(above(PartWrites, "rows a second", 5000, "rows/s").failing(2000), runs.Measure{Unit: "rows/s"}),
	}
}

// checklist are the checks that a measurement was of what it should be of, and
// that nothing stalled.
func (p *pair) checklist() []Criterion {
	return []Criterion{
		p.residency(),
		p.diskReads(),
		p.sustained(below(PartChecklist, "longest commit", 500, "ms"), runs.Measure{Unit: "max-ms"}),
		p.walSize(),
	}
}

// residency is that at the end, when the data are largest.
func (p *pair) residency() Criterion {
	c := above(PartChecklist, "resident in the page cache", 95, "%")
	return p.observed(c, func(r *result.Record) (float64, bool) {
		if v, ok := r.Metric("resident"); ok {
			return 100 * v, true
		}
		for i := len(r.Timeline) - 1; i >= 0; i-- {
			if v := r.Timeline[i].Resident; v != nil {
				return 100 * *v, true
			}
		}
		return 0, false
	})
}

func (p *pair) walSize() Criterion {
	c := below(PartChecklist, "largest WAL", 100, "MB")
	return p.observed(c, func(r *result.Record) (float64, bool) {
		largest, ok := r.Metric("wal-MB")
		for _, s := range r.Timeline {
			if s.WALBytes != nil {
				largest, ok = max(largest, float64(*s.WALBytes)/1e6), true
			}
		}
		return largest, ok
	})
}

// The number of reads is not recorded, their bytes are. A read of the page
// cache is of one page at least, and of the read-ahead window at most.
const (
	smallestRead = 4 << 10
	largestRead  = 128 << 10
)

// diskReads bounds the reads a second from both sides by their bytes.
func (p *pair) diskReads() Criterion {
	c := below(PartChecklist, "reads from disk", 10, "reads/s")
	c = p.observed(c, func(r *result.Record) (float64, bool) {
		var bytes float64
		var known bool
		for _, s := range r.Timeline {
			if s.ReadBytes != nil {
				bytes, known = bytes+float64(*s.ReadBytes), true
			}
		}
		if n := len(r.Timeline); n > 0 && r.Timeline[n-1].At > 0 {
			return bytes / smallestRead / r.Timeline[n-1].At, known
		}
		return 0, false
	})
	if c.Got == nil {
		return c
	}
	c = c.note("at most, from the bytes read in pages of 4 KiB")
	if c.Verdict == Fail && *c.Got*smallestRead/largestRead < c.Want {
		c.Verdict = Unknown
		c = c.note("with reads of 128 KiB it would be %s", number(*c.Got*smallestRead/largestRead))
	}
	return c
}

// observed judges a criterion by what f finds in the records of D1 at the
// largest scale: the median over repetitions.
func (p *pair) observed(c Criterion, f func(*result.Record) (float64, bool)) Criterion {
	points := p.paced("D1", p99)
	if len(points) == 0 {
		return p.answer(c, evidence{}, false, "D1", 0)
	}
	e := points[len(points)-1]
	if e.failed {
		return c.crashed(e.group)
	}
	var values []float64
	for _, r := range e.group.Good() {
		if v, ok := f(r); ok && !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	median, ok := runs.Median(values)
	if !ok {
		return c.from(e.group).unknown("", "the run does not tell it")
	}
	return c.judge(median, e.group)
}

// reorg is the validation test: the same keys deleted and inserted.
func (p *pair) reorg() []Criterion {
	c := below(PartReorg, "commit p99 while the same keys are deleted and inserted", 500, "ms")
	e, ok := p.largest("D3", p99, "<")
	c = p.answer(c, e, ok, "D3", 0)
	if ok && !e.failed {
		if growth, has := e.group.Median(runs.Measure{Unit: "growth-MB"}); has {
			c = c.note("the database grew by %s MB", number(growth))
		}
	}
	return []Criterion{c}
}
