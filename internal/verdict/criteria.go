package verdict

import (
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// What the documents ask for.
const (
	treeP99   = 500.0  // ms
	treeScale = 5.0    // times the base profile
	treeRate  = 6000.0 // rows/s, sustained
	blockTime = 2000.0 // ms: a commit that takes longer misses its block
	v1Reads   = 1000.0 // reads/s, the lower end of V1

	// Entities of the data centre that V1 is of, and at scale 1 of the base profile
	// and of the data centres.
	v1Entities     = 621_000.0
	baseEntities   = 800_000.0
	centreEntities = 1_200_000.0
	v1Scale        = v1Entities / baseEntities
)

// question is a criterion with where its answer is found.
type question struct {
	part, name, op string
	want           float64 // as in Criterion
	unit           string
	at             float64
	run            string // experiments that measure it
	from           []source
	is             property
}

// source is a figure of the runs that keep says.
type source struct {
	figure figure
	keep   func(*runs.Group) bool
}

func from(f figure, keep func(*runs.Group) bool) []source { return []source{{f, keep}} }

// property tells questions apart that are answered in a way of their own.
type property int

const (
	decides property = 1 << iota // an engine is not chosen without it
	trend                        // smaller sizes may tell by a power law
)

// judged are the experiments that criteria look at.
var judged = []string{"C1", "D1", "D3", "D4", "D5", "E3"}

// questions are those about every engine. The tree's is "p99 commit latency < 500 ms
// at 5x with a sustained load of ~6K rows/s". What is written without a pace counts
// for a rate as well: blocks at the pace of the documents may have fewer rows.
var questions = []question{
	{PartTree, "commit p99 at 5x", "<", treeP99, "ms", treeScale, "D1", from(p99, paced("D1", "D5")), decides | trend},
	{PartTree, "rows/s sustained at 5x", ">", nearly * treeRate, "rows/s", treeScale, "D1", from(rows, of("D1", "D5")), decides},

	{PartWrites, "commit p50", "<", 500, "ms", 1, "D1", from(p50, paced("D1")), 0},
	{PartWrites, "commit p99", "<", 1500, "ms", 1, "D1", from(p99, paced("D1")), 0},
	{PartWrites, "commit max", "<", 2000, "ms", 1, "D1", from(longest, paced("D1")), 0},
	{PartWrites, "rows a second", ">", 5000, "rows/s", 1, "D1", from(rows, of("D1")), 0},

	// That a measurement was of what it should be of, and that nothing stalled.
	{PartChecklist, "resident in the page cache", ">", 95, "%", 0, "D1", from(resident, paced("D1")), 0},
	{PartChecklist, "reads from disk", "<", 10, "reads/s", 0, "D1", from(diskReads, paced("D1")), 0},
	{PartChecklist, "longest commit", "<", 500, "ms", 1, "D1", from(longest, paced("D1")), 0},
	{PartChecklist, "largest WAL", "<", 100, "MB", 0, "D1", from(walSize, paced("D1")), 0},

	{PartReorg, "commit p99 while the same keys are deleted and inserted", "<", 500, "ms", 1, "D3", from(reorg, of("D3")), 0},

	{PartCombined, "reads/s with commits below 2 s", ">", v1Reads, "reads/s", 1, "D4", from(ceiling, isCeiling), 0},
}

// v1Reading are the questions about reads alone.
var v1Reading = []question{
	{PartV1, "reads/s of mix A with one client", "≥", v1Reads, "reads/s", v1Scale, v1Runs, mixReads("A"), decides},
	{PartV1, "reads/s of mix B with one client", "≥", v1Reads, "reads/s", v1Scale, v1Runs, mixReads("B"), decides},
	{PartV1, "reads/s of mix C with one client", "≥", v1Reads, "reads/s", v1Scale, v1Runs, mixReads("C"), decides},
}

// v1Loads are both ends of V1's range, of which the lower one decides.
var v1Loads = []struct {
	name string
	load
	is property
}{
	{"10K rows/s with 1K reads/s", load{10_000, v1Reads}, decides},
	{"50K rows/s with 10K reads/s", load{50_000, 10_000}, 0},
}

// v1Runs are what V1 is judged from.
const v1Runs = "C1 D1 D4"

// v1Loaded are the experiments that tell whether a load is carried.
var v1Loaded = []string{"D1", "D4", "E3"}

// of keeps the groups of experiments.
func of(ids ...string) func(*runs.Group) bool {
	return func(g *runs.Group) bool { return slices.Contains(ids, g.Experiment) }
}

// paced keeps the groups of experiments whose commits came at the pace of the
// documents: as fast as they go there is no waiting to see.
func paced(ids ...string) func(*runs.Group) bool {
	return func(g *runs.Group) bool { return of(ids...)(g) && asked(g).writes == treeRate }
}

// isCeiling keeps the runs that searched for the highest rate of reads at which
// commits keep their limit.
func isCeiling(g *runs.Group) bool { return g.Experiment == "D4" && g.Get("qps") == "ceiling" }

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
