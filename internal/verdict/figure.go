package verdict

import (
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

const (
	// enoughCommits are those that a p99 is judged from: ten were slower.
	enoughCommits = 1000

	// enoughReads are those that a rate of reads is taken from.
	enoughReads = 100
)

// Units of metrics.
const (
	rowsUnit    = "rows/s"
	readsUnit   = "qps"
	ceilingUnit = "ceiling-qps"
)

// figure is what is read from a record.
type figure struct {
	unit  string                               // of a metric and its noise; "": chance has no part
	of    func(*result.Record) (float64, bool) // nil: the metric
	least float64                              // part of the figure that it may be down to; 0: it is exact
	note  func(*runs.Group) string             // what to know beside it

	kind  string // of the operations that it is of, …
	needs int64  // … how many there have to be, …
	most  bool   // … and whether more of them can only make it larger

	under  bool   // it is one under the load that was asked for, …
	load   bool   // … which is asked about as well, …
	inTime bool   // … with commits that do not miss their blocks
	weak   string // why a good value proves nothing
	hard   string // why a bad value proves nothing
}

// value returns the figure of a record; false when it has none.
func (f *figure) value(r *result.Record) (float64, bool) {
	if f.of != nil {
		return f.of(r)
	}
	return runs.Measure{Unit: f.unit}.Of(r)
}

var (
	rows    = figure{unit: rowsUnit}
	p50     = figure{unit: "p50-ms", under: true}
	p99     = figure{unit: "p99-ms", under: true, kind: "commit", needs: enoughCommits}
	longest = figure{unit: "max-ms", under: true, kind: "commit", needs: enoughCommits, most: true}
	reorg   = figure{unit: "p99-ms", kind: "commit", needs: enoughCommits, note: growth}
	besides = figure{unit: "p99-ms", under: true, load: true, kind: "commit", needs: enoughCommits, note: didDeliver}
	ceiling = figure{unit: ceilingUnit, under: true, load: true, kind: "commit", needs: enoughCommits, note: didDeliver, of: reached}

	resident = figure{of: exactly("resident", 100)}
	walSize  = figure{of: exactly("wal-MB", 1)}

	// The number of reads is not recorded, their bytes are: a read of the page cache is
	// of one page at least, and of the read-ahead window at most, which is 32 pages.
	diskReads = figure{of: exactly("disk-read-MB/s", 1e6/(4<<10)), note: pages, least: 1.0 / 32}
)

// exactly is so many times a metric, in which chance has no part.
func exactly(unit string, times float64) func(*result.Record) (float64, bool) {
	return func(r *result.Record) (float64, bool) {
		v, ok := r.Metric(unit)
		return times * v, ok
	}
}

// mixReads are how many reads of a mix one client gets: alone, or of a growing store.
func mixReads(mix string) []source {
	return []source{
		{figure{unit: readsUnit, kind: "all", needs: enoughReads}, func(g *runs.Group) bool {
			return g.Experiment == "C1" && g.Get("mix") == mix && g.Get("clients") == "1"
		}},
		{figure{unit: readsUnit + "-" + mix, kind: "mix-" + mix, needs: enoughReads}, of("D5")},
	}
}

// reached is the highest rate of reads at which commits kept their limit, as far as
// it was delivered.
func reached(r *result.Record) (float64, bool) {
	highest, ok := r.Metric(ceilingUnit)
	if delivered, stated := r.Metric(readsUnit); stated {
		highest = min(highest, delivered)
	}
	return highest, ok
}

func pages(*runs.Group) string { return "at most, from the bytes read in pages of 4 KiB" }

func growth(g *runs.Group) string {
	mb, ok := g.Median(runs.Measure{Unit: "growth-MB"})
	if !ok {
		return ""
	}
	return "the database grew by " + runs.Number(mb) + " MB"
}
