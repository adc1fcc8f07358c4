package experiment

import (
	"time"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
)

// addSamples joins samples and latencies to the record's timeline, and sums
// them up.
func addSamples(r *result.Record, samples *probe.Samples, started time.Time, seconds []result.Second) {
	r.Timeline = samples.Fill(seconds, started)
	r.Marks = append(r.Marks, samples.Marks(started)...)
	r.Metrics = append(r.Metrics, summarise(r.Timeline)...)
	if samples.Failures > 0 {
		r.Notes = append(r.Notes, "some samples are missing: "+samples.Err.Error())
	}
}

// summarise returns what a timeline comes to: the highest sizes, the average use
// of processor and disk, and what was resident last. What is not known is left
// out.
func summarise(line []result.Second) []result.Metric {
	var wal, rss, db peak
	var cpu, read, written, stall mean
	var resident *float64
	for i := range line {
		s := &line[i]
		wal.add(s.WALBytes)
		rss.add(s.RSSBytes)
		db.add(s.DatabaseBytes)
		read.addInt(s.ReadBytes)
		written.addInt(s.WriteBytes)
		stall.addInt(s.StallNS)
		cpu.add(s.CPU)
		if s.Resident != nil {
			resident = s.Resident
		}
	}
	list := wal.metric(nil, 1e6, "wal-MB")
	list = rss.metric(list, 1e6, "rss-MB")
	list = db.metric(list, 1e6, "db-MB")
	list = cpu.metric(list, 1, "cores")
	list = read.metric(list, 1e6, "disk-read-MB/s")
	list = written.metric(list, 1e6, "disk-write-MB/s")
	list = stall.metric(list, 1e6, "stall-ms/s")
	if resident != nil {
		list = append(list, result.Metric{Value: *resident, Unit: "resident"})
	}
	return list
}

// peak is the highest of the values that are known.
type peak struct {
	value int64
	known bool
}

func (p *peak) add(v *int64) {
	if v != nil {
		p.value, p.known = max(p.value, *v), true
	}
}

func (p *peak) metric(list []result.Metric, in float64, unit string) []result.Metric {
	if !p.known {
		return list
	}
	return append(list, result.Metric{Value: float64(p.value) / in, Unit: unit})
}

// mean is the average of the values that are known.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v *float64) {
	if v != nil {
		m.sum += *v
		m.n++
	}
}

func (m *mean) addInt(v *int64) {
	if v != nil {
		f := float64(*v)
		m.add(&f)
	}
}

func (m *mean) metric(list []result.Metric, in float64, unit string) []result.Metric {
	if m.n == 0 {
		return list
	}
	return append(list, result.Metric{Value: m.sum / float64(m.n) / in, Unit: unit})
}
