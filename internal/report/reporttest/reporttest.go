// Package reporttest makes result sets that look like measured ones, for tests
// of what reads them. The same seed gives the same records.
package reporttest

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/engine"
)

// The engines and layouts of a full set.
var (
	Engines = engine.Names()
	Layouts = []string{"arkiv", "arkiv-pruned", "simple", "compact"}
)

// begin is when the first record of a set says it was measured.
var begin = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// Options say how large a set is.
type Options struct {
	Engines []string // nil: all
	Layouts []string // nil: all
	Repeats int      // of each configuration; 0: one
	Seconds int      // of timelines; 0: 60
	Only    []string // experiments; nil: all
}

// Full makes a set with records of every experiment.
func Full(o Options) []result.Record {
	if o.Engines == nil {
		o.Engines = Engines
	}
	if o.Layouts == nil {
		o.Layouts = Layouts
	}
	m := &maker{Options: o, random: rand.New(rand.NewPCG(1, 2)), clock: begin}
	m.Repeats, m.Seconds = max(o.Repeats, 1), max(o.Seconds, 1)
	if o.Seconds == 0 {
		m.Seconds = 60
	}
	m.inserts()
	m.commits()
	m.drivers()
	m.reads()
	m.writes()
	m.dataCentre()
	return m.records
}

// maker adds records one after the other.
type maker struct {
	Options
	random  *rand.Rand
	clock   time.Time
	records []result.Record
}

// cost is how much slower than SQLite an engine is, in writes and in reads.
func cost(engine string) (write, read float64) {
	switch engine {
	case "libsql":
		return 1.3, 1.4
	case "duckdb":
		return 2.6, 14
	case "postgres":
		return 1.15, 3
	}
	return 1, 1
}

// weight is what a layout adds to a commit.
func weight(layout string) float64 {
	switch layout {
	case "simple":
		return 0.7
	case "arkiv-pruned":
		return 0.85
	case "compact":
		return 0.55
	}
	return 1
}

// noise is a factor around one.
func (m *maker) noise(sigma float64) float64 { return math.Exp(m.random.NormFloat64() * sigma) }

// pairs makes a configuration of keys and values.
func pairs(kv ...string) result.Config {
	var c result.Config
	for i := 0; i+1 < len(kv); i += 2 {
		c = append(c, result.Pair{Key: kv[i], Value: kv[i+1]})
	}
	return c
}

// add adds the repetitions of a configuration.
func (m *maker) add(experiment, name string, config result.Config, fill func(r *result.Record)) {
	if m.Only != nil && !slices.Contains(m.Only, experiment) {
		return
	}
	for repeat := range m.Repeats {
		r := result.Record{
			Experiment: experiment, Name: name, Config: config, Repeat: repeat,
			Started: m.clock, Took: time.Duration(m.Seconds) * time.Second,
		}
		fill(&r)
		m.clock = m.clock.Add(r.Took)
		m.records = append(m.records, r)
	}
}

func metric(r *result.Record, unit string, v float64) {
	r.Metrics = append(r.Metrics, result.Metric{Value: v, Unit: unit})
}

// latencies adds a log-normal distribution around a median, with a heavier tail
// above its 99th percentile, and its headline figures.
func (m *maker) latencies(r *result.Record, kind string, median, spread float64) {
	d := result.Distribution{Kind: kind, Count: 10_000}
	at := func(percent float64) time.Duration {
		z := math.Sqrt2 * math.Erfinv(2*percent/100-1)
		v := median * math.Exp(spread*z)
		if percent > 99 {
			v *= 1 + (percent-99)*0.8
		}
		return time.Duration(v * float64(time.Millisecond))
	}
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99} {
		d.Curve = append(d.Curve, result.Quantile{Percent: p, Value: at(p)})
	}
	d.P50, d.P95, d.P99, d.P999, d.Max = at(50), at(95), at(99), at(99.9), at(99.99)
	d.Mean = time.Duration(float64(d.P50) * math.Exp(spread*spread/2))
	r.Latencies = append(r.Latencies, d)
}

// headline adds the usual figures of commits.
func headline(r *result.Record) {
	d := r.Latency("commit")
	for _, v := range []struct {
		unit string
		took time.Duration
	}{{"p50-ms", d.P50}, {"p95-ms", d.P95}, {"p99-ms", d.P99}, {"max-ms", d.Max}} {
		metric(r, v.unit, float64(v.took)/float64(time.Millisecond))
	}
}

// timeline adds seconds of commits with a checkpoint every so often.
func (m *maker) timeline(r *result.Record, median, every float64) {
	var wal int64
	for s := 1; s <= m.Seconds; s++ {
		at := float64(s)
		p99 := median * m.noise(0.2) * 2
		wal += int64(4e6 * m.noise(0.1))
		var done int64
		if every > 0 && int(at)%int(every) == 0 {
			p99 *= 4
			r.Marks = append(r.Marks, result.Mark{At: at - 0.4, Took: 300 * time.Millisecond, Label: "checkpoint"})
			done, wal = 1, 0
		}
		walBytes, db, rss, read := wal, int64(1e8+at*5e6), int64(2e8), int64(m.random.IntN(8192))
		resident, cpu := 0.99, 0.8*m.noise(0.05)
		r.Timeline = append(r.Timeline, result.Second{
			At: at, Count: 60, P50: ms(median), P99: ms(p99), Max: ms(p99 * 1.4),
			WALBytes: &walBytes, DatabaseBytes: &db, RSSBytes: &rss, CPU: &cpu, ReadBytes: &read, Resident: &resident, Checkpoints: &done,
		})
	}
}

func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }

// Write writes a set as `varve run` leaves it, with a manifest for each engine.
func Write(dir string, records []result.Record) (err error) {
	w, err := result.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	keys := map[string]string{}
	for i := range records {
		r := records[i]
		engine := r.Config.Get("engine")
		if keys[engine] == "" {
			if keys[engine], err = w.Manifest(manifest(engine)); err != nil {
				return err
			}
		}
		r.Manifest = keys[engine]
		if err := w.Append(&r); err != nil {
			return err
		}
	}
	return nil
}
