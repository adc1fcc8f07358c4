package verdict

import (
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// writes are the targets for commits under sustained load, at the documents' size.
func (p *pair) writes() []Criterion {
	p50 := below(PartWrites, "commit p50", 500, "ms").failing(2000).at(1)
	slow := below(PartWrites, "commit p99", 1500, "ms").failing(2000).at(1)
	most := below(PartWrites, "commit max", 2000, "ms").failing(3000).at(1)
	rate := above(PartWrites, "rows a second", 5000, "rows/s").failing(2000).at(1)
	return []Criterion{
		p.sustained(p50, runs.Measure{Unit: "p50-ms"}), p.sustained(slow, p99), p.sustained(most, longest),
		p.answer(p.measure(rate, "D1"), "D1", curve(p.groups, rowsPerSecond, of("D1"))),
	}
}

// sustained judges a latency of commits at the pace of the documents.
func (p *pair) sustained(c Criterion, m runs.Measure) Criterion {
	return p.answer(p.measure(c, "D1"), "D1", curve(p.groups, m, paced("D1")))
}

// checklist are the checks that a measurement was of what it should be of, and
// that nothing stalled.
func (p *pair) checklist() []Criterion {
	return []Criterion{
		p.residency(),
		p.diskReads(),
		p.sustained(below(PartChecklist, "longest commit", 500, "ms").at(1), longest),
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
		c = c.unknown("with reads of 128 KiB it would be %s", runs.Number(*c.Got*smallestRead/largestRead))
	}
	return c
}

// observed judges a criterion by what f finds in the records of D1 at the
// largest scale.
func (p *pair) observed(c Criterion, f func(*result.Record) (float64, bool)) Criterion {
	points := curve(p.groups, rowsPerSecond, paced("D1"))
	for i := range points {
		points[i] = take(points[i].group, 1, f)
	}
	c = p.measure(c, "D1")
	if n := len(points); n > 0 && points[n-1].doubt != "" {
		c.Command = "" // would not tell it either
	}
	return p.answer(c, "D1", points)
}

// reorg is the validation test: the same keys deleted and inserted.
func (p *pair) reorg() []Criterion {
	c := below(PartReorg, "commit p99 while the same keys are deleted and inserted", 500, "ms").at(1)
	points := curve(p.groups, p99, of("D3"))
	c = p.answer(p.measure(c, "D3"), "D3", points)
	if n := len(points); n > 0 {
		if growth, ok := points[n-1].group.Median(runs.Measure{Unit: "growth-MB"}); ok {
			c = c.note("the database grew by %s MB", runs.Number(growth))
		}
	}
	return []Criterion{c}
}
