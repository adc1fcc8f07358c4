package report_test

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/report"
)

// tableOf makes the rows of a table of a set's text, as they are printed.
func tableOf(t *testing.T, text string, v report.View) (rows []string, note string) {
	t.Helper()
	table, err := load(t, text).Table(v)
	require.NoError(t, err)
	for _, row := range table.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.String())
		}
		rows = append(rows, strings.Join(cells, " | "))
	}
	return rows, table.Note
}

// sitting is the lines of a sitting on a host: a benchmark's name and values, each line once for each factor.
func sitting(id, host string, factors []float64, pairs ...any) string {
	text := fmt.Sprintf("sitting: %s\nhost: %s\n", id, host)
	for i := 0; i < len(pairs); i += 2 {
		for _, f := range factors {
			text += fmt.Sprintf("Benchmark%s 1 %v %s\n", pairs[i], pairs[i+1].(float64)*f, "rows/s")
		}
	}
	return text
}

// A side is shown by its ratio to the reference of its own sitting, whatever
// the hosts; the reference by its figure, with the range over all of them. A
// sitting without the reference has its absolute figure.
func TestTableOfRatios(t *testing.T) {
	runs := []float64{0.98, 0.99, 1, 1.01}
	const ref, libsql, arkiv = "X/engine=sqlite/layout=compact/scale=1", "X/engine=libsql/layout=compact/scale=1", "X/engine=sqlite/layout=arkiv/scale=1"
	text := sitting("1", "a", runs, libsql, 50., arkiv, 10., ref, 100.) +
		sitting("2", "b", runs, libsql, 480., ref, 800.) + // eight times as fast
		sitting("3", "b", runs, ref, 600., libsql, 420.) +
		sitting("4", "a", runs, "X/engine=postgres/layout=compact/scale=1", 70., "X/engine=libsql/layout=compact/scale=2", 7.)
	rows, note := tableOf(t, text, report.View{Rows: "/engine /layout /scale@num", Columns: []report.Column{{Unit: "rows/s"}}})
	require.Equal(t, []string{
		"sqlite | compact | 1 | 597 (99.5–796) | n=3, 2 hosts (1, 2, 3)",
		"sqlite | arkiv | 1 | × 0.1 | one sitting (1)",
		"libsql | compact | 1 | × 0.6 (0.5–0.7) | n=3, 2 hosts (1, 2, 3)",
		"libsql | compact | 2 | 6.96 (6.86–7.07) | one sitting (4)", // nothing to compare it with
		"postgres | compact | 1 | 69.7 (68.6–70.7) | one sitting (4)",
	}, rows)
	require.Contains(t, note, "× is a ratio to sqlite compact of the same sittings")

	// Across the engines the reference is that of the same layout, where the default one is not there.
	rows, note = tableOf(t, strings.ReplaceAll(sitting("1", "a", runs, libsql, 50., ref, 100.), "compact", "tags"),
		report.View{Rows: "/scale@num", Columns: []report.Column{{Unit: "rows/s", Across: "engine"}}})
	require.Equal(t, []string{"1 | 99.5 (98–101) | × 0.5"}, []string{strings.Join(rows, "")})
	require.Contains(t, note, "to sqlite of the same")

	// A ratio with a run on a machine that was not at rest is marked.
	rows, _ = tableOf(t, "BenchmarkX/engine=libsql 1 50 rows/s\nmachine-off: others\nBenchmarkX/engine=sqlite 1 100 rows/s\n",
		report.View{Rows: "/engine", Columns: []report.Column{{Unit: "rows/s"}}})
	require.Equal(t, []string{"sqlite | 100†", "libsql | ? × 0.5†"}, rows)

	// What cannot be told apart says so.
	rows, _ = tableOf(t, sitting("1", "a", []float64{1, 2, 3, 4}, libsql, 110., ref, 100.), report.View{Rows: "/engine", Columns: []report.Column{{Unit: "rows/s"}}})
	require.Equal(t, "libsql | ~ × 1.1", rows[1])
}

// The delivered part of a requested rate is no ratio, and neither is a size or
// a count.
func TestAbsolute(t *testing.T) {
	const name, rest = "BenchmarkX/engine=%s/layout=compact/rate=6000 1 6000 rows/s %v late %v data-MB %v p99-ms\n", ""
	rows, _ := tableOf(t, fmt.Sprintf(name, "sqlite", 1, 10, 20)+fmt.Sprintf(name, "libsql", 3, 10, 30)+rest,
		report.View{Rows: "/engine", Columns: []report.Column{{Unit: "rows/s"}, {Unit: "late"}, {Unit: "data-MB"}, {Unit: "p99-ms"}}})
	require.Equal(t, []string{"sqlite | 6,000 | 1 | 10 | 20", "libsql | 6,000 | 3 | 10 | ? × 1.5"}, rows)
}

// A percentile that is the wait after which arrivals were given up is at least that, and no more is known.
func TestLateIsLate(t *testing.T) {
	for _, tt := range []struct{ name, values, unit, want string }{
		{"/loop=open-1000-1", "2051 p99-ms 1000 qps 5 skipped", "p99-ms", "≥ 2 s"},
		{"/loop=open-1000-1", "1999 p99-ms 1000 qps 5 skipped", "p99-ms", "1,999"},
		{"/loop=open-1000-1", "1600 p99-ms 980 qps 5 skipped", "p99-ms", "≥ 2 s"}, // 2 % have no latency at all
		{"/loop=open-1000-1", "1600 p95-ms 980 qps 5 skipped", "p95-ms", "1,600"},
		{"/loop=open-1000-1", "2051 p99-ms 1000 qps 0 skipped", "p99-ms", "2,051"}, // slow, but each was answered
		{"/qps=1000", "30000 p99-ms 2060 read-p99-ms 700 qps 9 skipped 0 commit-skipped", "p99-ms", "30K"},
		{"/qps=1000", "30000 p99-ms 2060 read-p99-ms 700 qps 9 skipped 0 commit-skipped", "read-p99-ms", "≥ 2 s"},
		{"/qps=1000", "30000 p99-ms 60 read-p99-ms 1000 qps 0 skipped 3 commit-skipped", "p99-ms", "≥ 2 s"},
		{"/qps=1000", "3000 max-ms 60 read-max-ms 1000 qps 0 skipped 3 commit-skipped", "max-ms", "≥ 2 s"},
	} {
		rows, _ := tableOf(t, "BenchmarkX/engine=sqlite"+tt.name+" 1 "+tt.values+"\n", report.View{Rows: "/engine", Columns: []report.Column{{Unit: tt.unit}}})
		require.Equal(t, []string{"sqlite | " + tt.want}, rows, tt.values)
	}
	rows, _ := tableOf(t, "BenchmarkX/engine=sqlite 1 2051 p99-ms 5 skipped\nBenchmarkX/engine=sqlite 1 65 p99-ms 0 skipped\nBenchmarkX/engine=libsql 1 30 p99-ms 0 skipped\n",
		report.View{Rows: "/engine", Columns: []report.Column{{Unit: "p99-ms"}}})
	require.Equal(t, []string{"sqlite | 1,032 (65–≥ 2 s, one sitting)", "libsql | 30 (one run)"}, rows, "there is no ratio to what is not known")
}

// A rate of a loop that was not busy is not the engine's: there is no figure of it, and no ratio to it.
func TestBusy(t *testing.T) {
	line := func(engine string, busy float64, more string) string {
		return fmt.Sprintf("BenchmarkX/engine=%s/layout=compact 1 500 rows/s 7 p99-ms %v busy%s\n", engine, busy, more)
	}
	view := report.View{Rows: "/engine", Columns: []report.Column{{Unit: "rows/s"}, {Unit: "p99-ms"}}}
	rows, _ := tableOf(t, line("sqlite", 0.97, "")+line("libsql", 0.96, "")+line("libsql", 0.91, "")+line("duckdb", 0.95, ""), view)
	require.Equal(t, []string{"sqlite | 500 | 7", "libsql | not busy: 0.91 | ? × 1 (one sitting)", "duckdb | ? × 1 | ? × 1"}, rows)
	rows, _ = tableOf(t, line("sqlite", 0.5, "")+line("libsql", 0.96, ""), view)
	require.Equal(t, "libsql | 500 | ? × 1", rows[1])
	rows, _ = tableOf(t, line("sqlite", 0.5, " 0 commit-late"), view) // the busy loop is the reads'
	require.Equal(t, []string{"sqlite | 500 | 7"}, rows)
	rows, _ = tableOf(t, line("libsql", 0.5, "")+"sitting: 2\n"+line("sqlite", 0.96, ""), report.View{Rows: "/engine", Columns: view.Columns[:1]})
	require.Equal(t, []string{"sqlite | 500 | one run (1)", "libsql | not busy: 0.5 | 2"}, rows)
	rows, _ = tableOf(t, "BenchmarkX/engine=sqlite 1 500 rows/s 7 p99-ms\n", view) // as before there was busy
	require.Equal(t, []string{"sqlite | 500 | 7"}, rows)
}

// The change from one setting to another is that within a sitting.
func TestCompareWithinSittings(t *testing.T) {
	const none, six = "Insert/engine=sqlite/indexes=0/mode=bulk/rows=1000", "Insert/engine=sqlite/indexes=6/mode=bulk/rows=1000"
	runs := []float64{0.98, 0.99, 1, 1.01}
	table := func(text string) string {
		var out bytes.Buffer
		require.NoError(t, writeText(&out, load(t, "experiment: A1\n"+text), experiment(t, "A1")))
		return out.String()
	}
	require.Contains(t, table(sitting("1", "a", runs, none, 100., six, 50.)+sitting("2", "b", runs, none, 1000., six, 400.)),
		"| 0 → 6   | bulk | × 0.45 (0.4–0.5, n=2, 2 hosts) |      × 0.127 |")
	require.Contains(t, table(sitting("1", "a", runs, none, 100.)+sitting("2", "a", runs, six, 50.)), "| 0 → 6   | bulk |      – |", "of two sittings")
}

// Figures that others published stand in columns that say so, and below is how others' programs were run.
func TestPublished(t *testing.T) {
	text := `experiment: G1
BenchmarkRebac/engine=sqlite/profile=full/op=check-view-group/clients=1/closure=materialised 1 1 p95-ms
peer: OpenFGA 1, its store in SQLite
settings: its caches off
BenchmarkPeer/peer=openfga-sqlite/profile=full/op=check-view-group/clients=1 1 3 p95-ms
BenchmarkPeer/peer=openfga-sqlite/profile=full/op=check-view-group/clients=1 1 4 p95-ms
`
	var out bytes.Buffer
	require.NoError(t, writeText(&out, load(t, text), experiment(t, "G1")))
	require.Contains(t, out.String(), "| published: SpiceDB-PG | published: Postgres17 | openfga-sqlite |")
	require.Contains(t, out.String(), "|      3.5 (3–4) |")
	require.Regexp(t, `(?s)one run\. SpiceDB-PG: SpiceDB on Postgres.*openfga-sqlite: its caches off\n`, out.String())
}

// The same block again is no further observation: a regression is of the blocks of one sitting.
func TestFitOfRepeats(t *testing.T) {
	blocks := func(repeats int) string {
		text := "experiment: A8\n"
		for id := 1.0; id <= 2; id++ {
			text += fmt.Sprintf("sitting: %v\n", id)
			for repeat := range repeats {
				for i := range 40 {
					entities, strs := float64(i%8+1), float64((i*7)%11)
					text += fmt.Sprintf("BenchmarkBlock/engine=sqlite/layout=arkiv/profile=mendoza/blocks=40/block=%d 1 %v ms %v entities %v strings\n",
						i+1, 1+2*id*entities+0.5*strs+0.3*float64(i%3)+0.001*float64(repeat), entities, strs)
				}
			}
		}
		var out bytes.Buffer
		require.NoError(t, writeText(&out, load(t, text), experiment(t, "A8")))
		return out.String()
	}
	once, six := blocks(1), blocks(6)
	require.Equal(t, 2, strings.Count(once, "|     40 |"), once)
	require.Contains(t, once, "| 2,000 (")
	require.Contains(t, once, "| 4,000 (", "each sitting by itself")
	require.Equal(t, once, six, "six times the same blocks tell as much as once")
}

// A dot is filled where reads kept their limit, and one that was given up did not.
func TestPictureOfGivenUp(t *testing.T) {
	for skipped, filled := range map[int]bool{0: true, 100: false} {
		s := load(t, fmt.Sprintf("BenchmarkX/engine=sqlite/rate=50000/qps=1000 1 50000 rows/s 900 qps 20 p99-ms 50 read-p99-ms %d skipped\n", skipped))
		pic, err := s.Draw(report.Sketch{Kind: report.Frontier, Series: []string{"engine"}})
		require.NoError(t, err)
		require.Equal(t, filled, bytes.Contains(pic.SVG, []byte("fill:#1F5FA8")), skipped)
	}
}

// A side that was measured in a slow sitting is drawn at its ratio to SQLite of
// that sitting, as if all had been measured in one, on any host. With a side that
// is compared with nothing, only one host is drawn.
func TestPictureOfRatios(t *testing.T) {
	paths := func(kind report.Kind, sittings ...string) (list []string) {
		pic, err := load(t, strings.Join(sittings, "\n")).Draw(report.Sketch{Kind: kind, Unit: "rows/s", Series: []string{"engine", "layout"}})
		require.NoError(t, err)
		require.Equal(t, len(sittings) > 1, strings.Contains(string(pic.SVG), "those beside sqlite compact by ratio to it"))
		return regexp.MustCompile(`<path d="[^"]*"`).FindAllString(string(pic.SVG), -1)
	}
	sitting := func(host, name string, figures map[string]int) string {
		text := "host: " + host + "\nexperiment: D1\nsitting: " + name + "\n"
		for _, engine := range slices.Sorted(maps.Keys(figures)) {
			for scale := 1; scale <= 2; scale++ {
				text += fmt.Sprintf("BenchmarkX/engine=%s/layout=compact/scale=%d 1 %d rows/s 5 p50-ms %d p99-ms\n", engine, scale, figures[engine]/scale, figures[engine])
			}
		}
		return text
	}
	for _, kind := range []report.Kind{report.Degradation, report.Quantiles} {
		slow, fast := sitting("a-b", "slow", map[string]int{"sqlite": 240, "libsql": 120}), sitting("a-b", "fast", map[string]int{"sqlite": 800, "postgres": 600})
		hosts := paths(kind, slow, sitting("c-d", "other", map[string]int{"sqlite": 7_000, "duckdb": 70}), fast)
		require.Equal(t, paths(kind, sitting("a-b", "one", map[string]int{"sqlite": 800, "libsql": 400, "postgres": 600, "duckdb": 8})), hosts)
		alone := paths(kind, slow, sitting("c-d", "other", map[string]int{"duckdb": 9}), fast)
		require.Equal(t, paths(kind, sitting("a-b", "one", map[string]int{"sqlite": 520, "libsql": 260, "postgres": 390})), alone)
	}
}

// An engine has the same colour in every picture, whatever else is in it, a
// layout the same dash, and a picture says of how much it is, and where.
func TestPictureStyle(t *testing.T) {
	line := func(engine, layout, scale string) string {
		return fmt.Sprintf("BenchmarkX/engine=%s/layout=%s/scale=%s 1 900 rows/s 5 p50-ms 20 p99-ms\n", engine, layout, scale)
	}
	draw := func(kind report.Kind, text string) string {
		pic, err := load(t, "host: a-b\nsitting: 1\n"+text).Draw(report.Sketch{Title: "Of <it>", Kind: kind, Unit: "rows/s", Label: "rows/s", Series: []string{"engine", "layout"}})
		require.NoError(t, err)
		return string(pic.SVG)
	}
	sizes := func(engine, layout string) string { return line(engine, layout, "1") + line(engine, layout, "2") }
	dashed := func(svg, colour string) bool {
		return regexp.MustCompile(`stroke:` + colour + `;[^"]*stroke-dasharray`).MatchString(svg)
	}
	const libsql, postgres = "#2E8B57", "#8B3F9E"
	alone := draw(report.Quantiles, line("libsql", "compact", "1"))
	require.Contains(t, alone, "stroke:"+libsql)
	require.False(t, dashed(alone, libsql))
	require.Contains(t, alone, ">99 %<")
	both := draw(report.Degradation, sizes("postgres@db", "arkiv")+sizes("libsql", "compact"))
	require.Contains(t, both, "stroke:"+libsql)
	require.False(t, dashed(both, libsql))
	require.True(t, dashed(both, postgres), "a server of the user's is of its engine")
	for _, want := range []string{">Of &lt;it&gt;<", ">n=1 run in 1 sitting, host a-b<", ">rows/s<"} {
		require.Contains(t, both, want)
	}
	require.Contains(t, alone, ", host a-b, scale 1<")
}

// Reads while rows are written have a line for each engine and layout, over the
// rates that were asked for, of one size and mix.
func TestPictureOfReads(t *testing.T) {
	var text string
	for _, engine := range []string{"sqlite", "duckdb"} {
		for _, mix := range []string{"A", "W"} {
			for i, rate := range []int{0, 6000, 50_000} {
				text += fmt.Sprintf("BenchmarkX/engine=%s/layout=compact/scale=1/mix=%s/rate=%d 1 %d rows/s %d qps 50 read-p99-ms 20 p99-ms\n", engine, mix, rate, rate, 900-i)
			}
		}
	}
	pic, err := load(t, text+"BenchmarkX/engine=sqlite/layout=compact/scale=5/mix=W/rate=0 1 0 rows/s 100 qps\n").
		Draw(report.Sketch{Kind: report.Frontier, Series: []string{"engine", "layout"}})
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(pic.SVG, []byte(" compact<")), "a line for each engine")
	for _, colour := range []string{"fill:#1F5FA8", "fill:#C44E1F"} {
		require.Equal(t, 3, bytes.Count(pic.SVG, []byte(colour)), "a dot for each rate")
	}
	require.Contains(t, string(pic.SVG), ", scale 1, mix W<")
}

// A measurement is marked where a copy in memory before it took more than twice its shortest time on
// the host. A slower host is not marked for that.
func TestSlowMemory(t *testing.T) {
	text := ""
	for _, test := range []struct {
		host         string
		fsync, speed int
	}{{"fast", 1, 5_000}, {"fast", 2, 2_600}, {"fast", 3, 2_400}, {"slow", 4, 1_000}} {
		text += fmt.Sprintf("host: %s\nsitting: 1\nrepeat: 1\nfsync-us: %d\nexperiment: M1\nBenchmarkMachine/engine=sqlite 1 %d copy-MB/s\n", test.host, test.fsync, test.speed)
		text += fmt.Sprintf("experiment: D1\nBenchmarkX/engine=sqlite 1 %d rows/s\nBenchmarkX/engine=libsql 1 9 rows/s\n", test.fsync)
	}
	s := load(t, text)
	var marked []float64
	for _, l := range s.Lines {
		if rows, has := l.Value("rows/s"); has && l.GetConfig("machine-off") != "" {
			marked = append(marked, rows)
		}
	}
	require.Equal(t, []float64{3}, marked)
	require.Equal(t, "† marks 2 of 12 measurements, because the machine was not at rest: copying in memory took more than 2 times its shortest time on the host.", s.Disturbance())
}
