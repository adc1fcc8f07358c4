package report

import (
	"fmt"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// maxSeconds is how many points a timeline has at most; longer runs are put
// together in intervals, of which the worst counts.
const maxSeconds = 200

// timelines shows what happened second by second, one chart for each engine.
// The settings are variants.
func (p *pivot) timelines(id, name string) ([]Chart, error) {
	var list []Chart
	for _, e := range p.engines {
		c := Chart{
			ID: id + "-" + e, Engine: e,
			Caption: fmt.Sprintf("%s on %s: commits second by second, checkpoints marked, size of the log below", name, e),
			Alt:     "Lines of the slowest commits of each second and of the log's size, with vertical lines at checkpoints; a summary is in the table",
		}
		table := Table{Columns: heads(p.keys...)}
		for _, h := range []string{"seconds", "commits", "worst second p99 ms", "max ms", "checkpoints", "largest log MB"} {
			table.Columns = append(table.Columns, Column{Head: h, Numeric: true})
		}
		for _, r := range p.rows {
			record := withTimeline(r.byEngine[e])
			if record == nil {
				continue
			}
			d := timelineDrawing(record)
			d.label = r.label()
			v, err := d.variant()
			if err != nil {
				return nil, err
			}
			c.Variants = append(c.Variants, v)
			table.Rows = append(table.Rows, append(names(r.values...), summary(record)...))
		}
		if len(c.Variants) > 0 {
			c.Tables = []Table{table}
			list = append(list, c)
		}
	}
	return list, nil
}

// withTimeline returns the first record with a timeline. One that failed will
// do: what led to a crash is worth seeing.
func withTimeline(g *runs.Group) *result.Record {
	if g == nil {
		return nil
	}
	for _, r := range append(g.Good(), g.Records...) {
		if len(r.Timeline) > 0 {
			return r
		}
	}
	return nil
}

func timelineDrawing(r *result.Record) drawing {
	d := drawing{
		x: axis{name: "seconds", format: "number", low: 0}, y: axis{name: "ms", log: true, format: "number"},
		below: &axis{name: "log MB", format: "number", low: 0},
	}
	engine := r.Config.Get("engine")
	slow := series{name: "p99", tag: Tag{Engine: engine}, symbol: "none"}
	worst := series{name: "max", tag: Tag{Engine: engine, Role: "second"}, symbol: "none", dash: "dotted"}
	wal := series{name: "log MB", tag: Tag{Engine: engine}, symbol: "none", below: true}
	for _, s := range thin(r.Timeline) {
		if s.P99 > 0 {
			slow.points = append(slow.points, [2]float64{s.At, runs.Milliseconds(s.P99)})
		}
		if s.Max > 0 {
			worst.points = append(worst.points, [2]float64{s.At, runs.Milliseconds(s.Max)})
		}
		if s.WALBytes != nil {
			wal.points = append(wal.points, [2]float64{s.At, float64(*s.WALBytes) / 1e6})
		}
	}
	for _, m := range r.Marks[:min(len(r.Marks), maxMarks)] {
		slow.marks = append(slow.marks, mark{name: m.Label, x: &m.At, bare: true})
	}
	d.lines = []series{slow, worst}
	if len(wal.points) > 0 {
		d.lines = append(d.lines, wal)
	} else {
		d.below = nil
	}
	return d
}

// maxMarks is how many marks a chart has at most; with more there would be
// nothing else to see.
const maxMarks = 100

// thin puts seconds together until they are few enough to draw.
func thin(seconds []result.Second) []result.Second {
	step := (len(seconds) + maxSeconds - 1) / maxSeconds
	if step <= 1 {
		return seconds
	}
	var list []result.Second
	for i := 0; i < len(seconds); i += step {
		s := seconds[i]
		for _, o := range seconds[i+1 : min(i+step, len(seconds))] {
			s.At, s.Count = o.At, s.Count+o.Count
			s.P99, s.Max = max(s.P99, o.P99), max(s.Max, o.Max)
			if o.WALBytes != nil && (s.WALBytes == nil || *o.WALBytes > *s.WALBytes) {
				s.WALBytes = o.WALBytes
			}
		}
		list = append(list, s)
	}
	return list
}

// summary is a timeline in one row.
func summary(r *result.Record) []Cell {
	var count, checkpoints int64
	var p99, longest float64
	var wal *float64
	for _, s := range r.Timeline {
		count += s.Count
		p99, longest = max(p99, runs.Milliseconds(s.P99)), max(longest, runs.Milliseconds(s.Max))
		if s.Checkpoints != nil {
			checkpoints += *s.Checkpoints
		}
		if s.WALBytes != nil {
			if mb := float64(*s.WALBytes) / 1e6; wal == nil || mb > *wal {
				wal = &mb
			}
		}
	}
	return []Cell{
		text(Number(r.Timeline[len(r.Timeline)-1].At)), text(Number(float64(count))), text(Number(p99)), text(Number(longest)),
		text(Number(float64(checkpoints))), optional(wal),
	}
}
