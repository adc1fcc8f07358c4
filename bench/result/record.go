package result

import (
	"slices"
	"strings"
	"time"
)

// Record is one run of one workload in one configuration. Runs that repeat it
// have the same experiment, name and config, and another Repeat.
type Record struct {
	Experiment string `json:"experiment"` // id in the catalogue, such as "A5"
	Name       string `json:"name"`       // of the workload, such as "Commit"; Go benchmark style, no slash
	Config     Config `json:"config"`
	Repeat     int    `json:"repeat"` // from 0: the block of the run, in which all that is compared is measured once, in random order; the number of a look at the machine

	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`

	Metrics   []Metric       `json:"metrics,omitempty"`
	Latencies []Distribution `json:"latencies,omitempty"` // one for each kind of operation
	Timeline  []Second       `json:"timeline,omitempty"`
	Marks     []Mark         `json:"marks,omitempty"`
	Table     *Table         `json:"table,omitempty"` // raw observations, such as one row a block
	Notes     []string       `json:"notes,omitempty"` // for readers: what was left out, and why

	// Manifest is the key of the manifest in the same result set. None is added
	// without; results of earlier versions have some.
	Manifest string `json:"manifest,omitempty"`

	// Over: it replaces an earlier one that was measured while the machine was busy.
	Over bool `json:"over,omitempty"`

	// Error says why the run did not end well; what was measured before is in
	// the record. A crash of an engine is such a result.
	Error string `json:"error,omitempty"`
}

// Config names a configuration, in the order of the keys in names of benchmarks:
// engine, layout, profile, durability, then what the workload varies.
type Config []Pair

// Pair is a key with its value. Neither has a space, slash or equals sign.
type Pair struct {
	Key   string `json:"k"`
	Value string `json:"v"`
}

// Get returns the value of a key, or "".
func (c Config) Get(key string) string {
	for _, p := range c {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}

// With returns the config with a key set, which goes to the end if it is new.
func (c Config) With(key, value string) Config {
	c = slices.Clone(c)
	for i := range c {
		if c[i].Key == key {
			c[i].Value = value
			return c
		}
	}
	return append(c, Pair{Key: key, Value: value})
}

// Without returns the config without a key.
func (c Config) Without(key string) Config {
	return slices.DeleteFunc(slices.Clone(c), func(p Pair) bool { return p.Key == key })
}

// String writes "engine=sqlite/layout=arkiv".
func (c Config) String() string {
	parts := make([]string, len(c))
	for i, p := range c {
		parts[i] = p.Key + "=" + p.Value
	}
	return strings.Join(parts, "/")
}

// Key tells configurations apart: records of one key are repetitions.
func (r *Record) Key() string { return r.Experiment + " " + r.Name + "/" + r.Config.String() }

// AAKey is the key of a second measurement of what a record without it says, with
// the value 2. Both are of one block, so how far they are apart is noise.
const AAKey = "aa"

// Again tells whether a record is such a second measurement, which tables of
// figures leave out.
func (r *Record) Again() bool { return r.Config.Get(AAKey) == "2" }

// Metric is one figure with its unit in benchfmt's way: "p99-ms", "rows/s".
type Metric struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Milliseconds returns a time as a figure.
func Milliseconds(d time.Duration, unit string) Metric {
	return Metric{Value: float64(d) / float64(time.Millisecond), Unit: unit}
}

// Metric returns the figure of a unit; false when the record has none.
func (r *Record) Metric(unit string) (float64, bool) {
	for _, m := range r.Metrics {
		if m.Unit == unit {
			return m.Value, true
		}
	}
	return 0, false
}

// Distribution is the latencies of one kind of operation. Times are nanoseconds.
type Distribution struct {
	Kind  string        `json:"kind"` // "commit", "get", "status=pending", …
	Count int64         `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`

	// Curve is the quantile function at growing percentiles, for charts.
	Curve []Quantile `json:"curve,omitempty"`
}

// What a percentile needs of operations to be told from their maximum.
const (
	P99Needs  = 100
	P999Needs = 1000
)

// Metrics returns the figures in milliseconds, their units with a prefix: the median,
// percentiles that there are enough operations for, and the longest.
func (d *Distribution) Metrics(prefix string) []Metric {
	if d.Count == 0 {
		return nil
	}
	list := []Metric{Milliseconds(d.P50, prefix+"p50-ms"), Milliseconds(d.P95, prefix+"p95-ms")}
	if d.Count >= P99Needs {
		list = append(list, Milliseconds(d.P99, prefix+"p99-ms"))
	}
	return append(list, Milliseconds(d.Max, prefix+"max-ms"))
}

// Quantile is a point of a distribution.
type Quantile struct {
	Percent float64       `json:"p"`
	Value   time.Duration `json:"ns"`
}

// Latency returns the distribution of a kind of operation, or nil.
func (r *Record) Latency(kind string) *Distribution {
	for i := range r.Latencies {
		if r.Latencies[i].Kind == kind {
			return &r.Latencies[i]
		}
	}
	return nil
}

// Second is what happened in one second of a run. Nil fields are not known.
type Second struct {
	At     float64       `json:"t"` // seconds since the run began, at the end of the interval
	Count  int64         `json:"n"` // operations that ended in it
	P50    time.Duration `json:"p50_ns,omitempty"`
	P99    time.Duration `json:"p99_ns,omitempty"`
	Max    time.Duration `json:"max_ns,omitempty"`
	Errors int64         `json:"errors,omitempty"`

	WALBytes      *int64   `json:"wal,omitempty"`
	DatabaseBytes *int64   `json:"db,omitempty"`
	RSSBytes      *int64   `json:"rss,omitempty"`      // of the engine's processes
	CPU           *float64 `json:"cpu,omitempty"`      // cores in use by them
	ReadBytes     *int64   `json:"read,omitempty"`     // from the disk, in this interval
	WriteBytes    *int64   `json:"write,omitempty"`    // to the disk, in this interval
	Checkpoints   *int64   `json:"checkpts,omitempty"` // that ended in this interval
	Resident      *float64 `json:"resident,omitempty"` // part of the database's files in the page cache, 0…1
	StallNS       *int64   `json:"stall_ns,omitempty"` // commits waited for checkpoints, in this interval
}

// Mark is something that happened during a run: a checkpoint, an injected stall.
type Mark struct {
	At    float64       `json:"t"` // seconds since the run began
	Took  time.Duration `json:"took_ns,omitempty"`
	Label string        `json:"label"`
}

// Table is raw observations: each row has a value for each column.
type Table struct {
	Columns []string    `json:"columns"`
	Rows    [][]float64 `json:"rows"`
}

// Column returns the values of a column, or nil.
func (t *Table) Column(name string) []float64 {
	i := slices.Index(t.Columns, name)
	if i < 0 {
		return nil
	}
	values := make([]float64, len(t.Rows))
	for n, row := range t.Rows {
		values[n] = row[i]
	}
	return values
}
