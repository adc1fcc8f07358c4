// Package reporttest makes result sets that look like measured ones, for tests
// of what reads them. The same seed gives the same records.
package reporttest

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store/driver"
)

// The engines and layouts of a full set.
var (
	Engines = engine.Names()
	Layouts = []string{"arkiv", "arkiv-pruned", "simple", "compact"}
)

// Crash is what a record of an engine that died says.
const Crash = "engine process ended: signal: killed"

// Options say how large a set is.
type Options struct {
	Engines []string // nil: all
	Layouts []string // nil: all
	Repeats int      // of each configuration; 0: one
	Seconds int      // of timelines; 0: 60
	Only    []string // experiments; nil: all
	Pairs   bool     // the first configuration of each experiment is measured twice
}

// shape says what an experiment's records look like: every combination of values of
// its keys, the kinds of operations, and the units of figures besides latencies.
type shape struct{ id, name, keys, kinds, units string }

const (
	ablation = "arkiv-0,arkiv-1,arkiv-2,arkiv-3,arkiv-4,arkiv-5,arkiv-6,arkiv-7,arkiv-8,arkiv-9,arkiv-10,arkiv-11,arkiv-12,arkiv-13"
	profiles = "typical,large,minimal,typical-256B,large-256B,minimal-256B"
	reads    = "all get status:pending allocatable_gpu $creator at-block payload"
	centre   = "nodes-in-dc available-gpu workloads-on-node pending match at-block"
	written  = "rows/s ent/s db-MB B/ent"
	load     = "profile=mendoza durability=durable scale=0.05"
	lasting  = "rows/s settled-rows/s wal-MB db-MB data-MB resident timeline"
)

// all in keys are the layouts of the options.
var shapes = []shape{
	{"A1", "Insert", "durability=durable store=memory indexes=0,2,6 commit=0 mode=single,bulk rows=50000", "commit", "rows/s"},
	{"A2", "Insert", "durability=durable store=file indexes=0,2,6 commit=10000 mode=bulk rows=50000", "commit", "rows/s"},
	{"A3", "Insert", "durability=durable store=file indexes=0,2,6 commit=500 mode=bulk,single rows=50000", "commit", "rows/s"},
	{"A4", "Insert", "durability=durable store=file indexes=6 commit=500 mode=single,batch,bulk rows=50000", "commit", "rows/s"},
	{"A5", "Commit", "layout=arkiv profile=" + profiles + " durability=durable entities=5000", "commit", written},
	{"A6", "Commit", "layout=simple profile=" + profiles + " durability=durable entities=5000", "commit", written},
	{"A7", "Commit", "layout=arkiv profile=memory durability=durable memory=0.1,0.5,1.5", "commit", written},
	{"A8", "SampledBlocks", "layout=arkiv,simple profile=mendoza durability=durable blocks=400", "commit", "r-attributes r-strings r-numbers r-entities r-payload-each"},
	{"A11", "Commit", "layout=" + ablation + " profile=typical durability=durable entities=5000", "commit", written},
	{"A12", "ReadMix", "layout=" + ablation + " durability=durable mix=A,B,C clients=1 loop=closed", reads, "qps"},
	{"A13", "Commit", "layout=arkiv profile=typical durability=durable,relaxed,unsafe store=disk,tmpfs", "commit", written + " fsync-us"},
	{"A14", "Designed", "layout=arkiv,simple durability=durable", "commit", "designed"},
	{"C1", "ReadMix", "layout=all durability=durable scale=0.05 mix=A,B,C clients=1,10 loop=closed", reads, "qps data-MB"},
	{"C2", "ReadMix", "layout=arkiv durability=durable scale=0.05 mix=A clients=10 loop=open-100,open-1000,open-5000,open-10000", reads, "qps late skipped lag-ms"},
	{"C3", "ReadMix", "layout=arkiv durability=durable scale=0.05 mix=A temperature=cold,lukewarm,warm", reads, "qps resident-before resident-after"},
	{"D1", "Sustained", "layout=all " + load + " rate=6000,max", "commit", lasting},
	{"D2", "Checkpoint", "layout=arkiv " + load + " policy=inline,background,manual frames=1000,10000", "commit with-checkpoint without-checkpoint", lasting},
	{"D3", "Reorg", "layout=all " + load, "commit", lasting + " growth-MB"},
	{"D4", "Combined", "layout=all " + load + " mix=A rate=6000 qps=0,100,1000,5000,ceiling", "commit " + reads, lasting + " qps read-p99-ms"},
	{"D5", "Degradation", "layout=all profile=mendoza durability=durable scale=0.01,0.05,0.2", "commit mix-A mix-B mix-C", "rows/s qps-A qps-B qps-C p99-ms-A p99-ms-B p99-ms-C"},
	{"E1", "DataCentreRead", "layout=all durability=durable scale=0.01 clients=1,10", centre, "qps"},
	{"E2", "DataCentreWrite", "layout=all durability=durable scale=0.01 dc=0,30,70,100", "commit", written},
	{"E3", "DataCentreCombined", "layout=all durability=durable scale=0.01 qps=100,1000", "commit " + centre, "rows/s qps"},
}

// figures are those of SQLite with the layout arkiv at scale 1; of a unit that is not
// listed they are 10.
var figures = map[string]float64{
	"rows/s": 30_000, "settled-rows/s": 28_000, "ent/s": 2500, "qps": 900, "qps-A": 900, "qps-B": 700, "qps-C": 400,
	"db-MB": 400, "data-MB": 300, "B/ent": 11_000, "wal-MB": 62, "fsync-us": 150, "resident": 0.99, "resident-before": 0.5, "resident-after": 1,
	"r-attributes": 0.96, "r-strings": 0.97, "r-numbers": 0.94, "r-entities": 0.9, "r-payload-each": 0.06, "skipped": 0,
}

// costs are how much more than that others take, in all that they do.
var costs = map[string]float64{
	"sqlitego": 1.2, "libsql": 1.3, "duckdb": 2.6, "postgres": 1.15, "simple": 0.7, "arkiv-pruned": 0.85, "compact": 0.55,
	"large": 8, "minimal": 0.5, "relaxed": 0.8, "unsafe": 0.7, "cold": 4, "lukewarm": 2, "single": 3,
}

// maker makes figures, with noise.
type maker struct {
	Options
	random *rand.Rand
}

// Full makes a set with records of every experiment.
func Full(o Options) []result.Record {
	if o.Engines == nil {
		o.Engines = Engines
	}
	if o.Layouts == nil {
		o.Layouts = Layouts
	}
	o.Seconds, o.Repeats = cmp.Or(o.Seconds, 60), max(o.Repeats, 1)
	m := &maker{Options: o, random: rand.New(rand.NewPCG(1, 2))}
	clock := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	var records []result.Record
	for _, s := range shapes {
		if o.Only != nil && !slices.Contains(o.Only, s.id) {
			continue
		}
		configs := m.configs(s.keys)
		for _, c := range configs {
			for repeat := range o.Repeats {
				r := result.Record{Experiment: s.id, Name: s.name, Config: c, Repeat: repeat, Started: clock, Took: time.Duration(o.Seconds) * time.Second}
				m.fill(&r, s)
				clock = clock.Add(r.Took)
				records = append(records, r)
			}
		}
		if s.id == "D5" {
			c := configs[0].With("engine", "duckdb").With("layout", "arkiv").With("scale", "1")
			records = append(records, result.Record{Experiment: s.id, Name: s.name, Config: c, Started: clock, Error: Crash})
		}
	}
	return records
}

// configs are all combinations of values of keys, and with pairs the first one again.
func (m *maker) configs(keys string) []result.Config {
	keys = "engine=" + strings.Join(m.Engines, ",") + " " + strings.ReplaceAll(keys, "layout=all", "layout="+strings.Join(m.Layouts, ","))
	configs := []result.Config{nil}
	for key := range strings.FieldsSeq(keys) {
		name, values, _ := strings.Cut(key, "=")
		var longer []result.Config
		for _, c := range configs {
			for v := range strings.SplitSeq(values, ",") {
				longer = append(longer, c.With(name, v))
			}
		}
		configs = longer
	}
	if m.Pairs {
		configs = append(configs, configs[0].With(result.AAKey, "2"))
	}
	return configs
}

// noise is a factor around one.
func (m *maker) noise() float64 { return math.Exp(m.random.NormFloat64() * 0.04) }

// fill measures a record.
func (m *maker) fill(r *result.Record, s shape) {
	cost := m.noise()
	for _, p := range r.Config {
		cost *= cmp.Or(costs[p.Value], 1)
	}
	if scale, err := strconv.ParseFloat(r.Config.Get("scale"), 64); err == nil {
		cost *= math.Pow(scale, 0.3)
	}
	for i, kind := range strings.Fields(s.kinds) {
		r.Latencies = append(r.Latencies, m.distribution(strings.Replace(kind, ":", "=", 1), cost*float64(12/(i+1))))
	}
	r.Metrics = r.Latencies[0].Metrics("")
	for unit := range strings.FieldsSeq(s.units) {
		switch unit {
		case "timeline":
			m.timeline(r, cost)
		case "designed":
			m.designed(r, cost)
		default:
			r.Metrics = append(r.Metrics, result.Metric{Value: m.figure(r.Config, unit, cost), Unit: unit})
		}
	}
	if r.Config.Get("qps") == "ceiling" {
		r.Metrics = append(r.Metrics, result.Metric{Value: m.figure(r.Config, "qps", cost), Unit: "ceiling-qps"})
	}
}

// figure is what a unit has at a cost; what was asked for is delivered, but no more
// than there is.
func (m *maker) figure(c result.Config, unit string, cost float64) float64 {
	v, ok := figures[unit]
	if !ok {
		v = 10
	}
	switch result.Better(unit) {
	case result.Lower:
		v *= cost * m.noise()
	case result.Higher:
		v /= cost * m.noise()
	}
	asked := map[string]string{"rows/s": c.Get("rate"), "qps": c.Get("qps")}[unit]
	if most, err := strconv.ParseFloat(asked, 64); err == nil {
		return min(v, most)
	}
	return v
}

// distribution is a log-normal one around a median in ms, with a heavier tail above
// its 99th percentile.
func (m *maker) distribution(kind string, median float64) result.Distribution {
	d := result.Distribution{Kind: kind, Count: 10_000, Mean: ms(median * 1.1)}
	median *= m.noise()
	at := func(percent float64) time.Duration {
		v := median * math.Exp(0.4*math.Sqrt2*math.Erfinv(2*percent/100-1))
		return ms(v * (1 + max(0, percent-99)*0.8))
	}
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99} {
		d.Curve = append(d.Curve, result.Quantile{Percent: p, Value: at(p)})
	}
	d.P50, d.P95, d.P99, d.P999, d.Max = at(50), at(95), at(99), at(99.9), at(99.99)
	return d
}

func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }

// timeline adds seconds of commits with a checkpoint every so often.
func (m *maker) timeline(r *result.Record, cost float64) {
	for s := 1; s <= m.Seconds; s++ {
		p99 := 20 * cost * m.noise()
		if s%15 == 0 {
			r.Marks = append(r.Marks, result.Mark{At: float64(s) - 0.4, Took: 300 * time.Millisecond, Label: "checkpoint"})
			p99 *= 4
		}
		r.Timeline = append(r.Timeline, result.Second{
			At: float64(s), Count: 60, P50: ms(10 * cost), P99: ms(p99), Max: ms(p99 * 1.4), WALBytes: new(int64(s % 15 * 4e6)),
		})
	}
}

// designed are the blocks of A14.
func (m *maker) designed(r *result.Record, cost float64) {
	r.Table = &result.Table{Columns: []string{"attributes", "payload_bytes", "entities", "ms"}}
	for i := range 108 {
		a, p, e := []float64{2, 8, 24}[i%3], []float64{256, 5120, 51200}[i/3%3], []float64{10, 40, 120}[i/9%3]
		r.Table.Rows = append(r.Table.Rows, []float64{a, p, e, cost*e*(0.05+0.012*a+0.006*p/1024)*m.noise() + 1})
	}
}

// Write writes a set as `varve run` leaves it, with a manifest for each engine.
func Write(dir string, records []result.Record) (err error) {
	w, err := result.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, r := range records {
		if r.Manifest, err = w.Manifest(manifest(r.Config.Get("engine"))); err != nil {
			return err
		}
		if err := w.Append(&r); err != nil {
			return err
		}
	}
	return nil
}

// manifest is what an engine's runs were measured with.
func manifest(engine string) bench.Manifest {
	return bench.Manifest{
		Varve:  bench.Revision{Go: "go1.26.0", Commit: "0123456789abcdef0123456789abcdef01234567"},
		Engine: bench.EngineVersion{Name: engine, Version: "3.1", Library: "example.com/" + engine},
		Settings: []driver.Setting{
			{Name: "journal_mode", Value: "wal"}, {Name: "synchronous", Value: "full"}, {Name: "cache", Value: "256 MiB"},
		},
		Options: bench.StoreOptions{Durability: driver.Durable, MemoryBytes: 256 << 20},
		Layout:  "arkiv",
		Host: bench.Host{
			OS: "linux", Arch: "amd64", Kernel: "6.1", CPU: "Example CPU", Cores: 2, MaxProcs: 2, MemoryBytes: 24 << 30, Filesystem: "ext4",
			Fsync: bench.Fsync{Samples: 64, Median: 150 * time.Microsecond, Max: 900 * time.Microsecond},
		},
	}
}
