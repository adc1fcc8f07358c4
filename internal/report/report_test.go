package report_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

// load makes a set of a file's text.
func load(t *testing.T, text string) *report.Set {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "A1-sqlite-1.txt"), []byte(text), 0o600))
	s, err := report.Load(dir)
	require.NoError(t, err)
	return s
}

// experiment is one of the catalogue.
func experiment(t *testing.T, id string) report.Experiment {
	t.Helper()
	found, err := lab.Find([]string{id})
	require.NoError(t, err)
	return found[0].Report()
}

// writeText writes the tables of an experiment as a terminal shows them.
func writeText(w io.Writer, s *report.Set, x report.Experiment) error {
	a, err := s.Answer(x)
	if err != nil {
		return err
	}
	return report.WriteTables(w, a.Tables)
}

const inserts = `experiment: A1
sitting: 1
host: a-b
Unit rows/s better=higher
BenchmarkInsert/engine=sqlite/indexes=0/mode=bulk/rows=1000 1 100 rows/s
BenchmarkInsert/engine=sqlite/indexes=0/mode=bulk/rows=1000 1 110 rows/s
BenchmarkInsert/engine=sqlite/indexes=0/mode=bulk/rows=1000 1 90 rows/s
BenchmarkInsert/engine=duckdb/indexes=0/mode=bulk/rows=1000 1 7 rows/s
machine-off: others
BenchmarkInsert/engine=sqlite/indexes=6/mode=bulk/rows=1000 1 50 rows/s
machine-off:
BenchmarkInsert/engine=sqlite/indexes=6/mode=bulk/rows=1000 1 52 rows/s
BenchmarkInsert/engine=sqlite/indexes=6/mode=bulk/rows=1000 1 48 rows/s
BenchmarkInsert/engine=sqlite/indexes=0/mode=bulk/rows=10 1 1 rows/s
excluded: error: out of memory
BenchmarkInsert/engine=sqlite/indexes=6/mode=bulk/rows=1000 1 1 failed
excluded: wrong clock
BenchmarkInsert/engine=sqlite/indexes=0/mode=bulk/rows=1000 1 9999 rows/s
excluded:
`

// Several hosts have one row for the reference, and for others one each, because absolute figures of
// two hosts have no median.
func TestTableOfHosts(t *testing.T) {
	s := load(t, inserts+"host: c-d\nsitting: 2\nBenchmarkInsert/engine=sqlite/indexes=0/mode=bulk/rows=1000 1 5 rows/s\n"+
		"sitting: 3\nBenchmarkInsert/engine=duckdb/indexes=6/mode=bulk/rows=1000 1 5 rows/s\nhost: e-f\nsitting: 4\nBenchmarkInsert/engine=duckdb/indexes=6/mode=bulk/rows=1000 1 9 rows/s\n")
	rows := func(filter string) (list [][]string) {
		table, err := s.Table(report.View{Filter: "/rows:1000 " + filter, Rows: "/engine", Columns: []report.Column{{Unit: "rows/s"}}})
		require.NoError(t, err)
		for _, row := range table.Rows {
			list = append(list, []string{row[1].String(), row[2].String()})
		}
		return list
	}
	require.Equal(t, [][]string{{"52.5 (5–100)", "n=2, 2 hosts (1, 2)"}}, rows("/engine:sqlite /indexes:0"))
	require.Equal(t, [][]string{{"5", "one run (3)"}, {"9", "one run (4)"}}, rows("/engine:duckdb /indexes:6"))
}

// A table has medians with their ranges and numbers, marks figures of a machine
// that was not at rest, leaves out excluded lines, and has published figures in
// columns next to ours.
func TestTable(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, writeText(&text, load(t, inserts), experiment(t, "A1")))
	require.Equal(t, `rows/s
| indexes | mode |       sqlite |               duckdb | published: Arkiv-report |
|---------|------|-------------:|---------------------:|------------------------:|
| 0       | bulk | 100 (90–110) | ? × 0.0702 (one run) |                   1.97M |
| 6       | bulk |  50† (48–52) |                    – |                    250K |
rows 1000, one sitting where nothing else is said, 1 runs of 6 bulk were killed or failed, × is a
ratio to sqlite of the same sittings. Arkiv-report: synchronous=NORMAL

change of rows/s
| indexes | of   |                   sqlite | duckdb | Arkiv-report |
|---------|------|-------------------------:|-------:|-------------:|
| 0 → 6   | bulk | ? × 0.501† (one sitting) |      – |      × 0.127 |

`, text.String())

	p, err := report.NewPage(load(t, inserts), "T", lab.Sections())
	require.NoError(t, err)
	require.Equal(t, []report.Excluded{{"error: out of memory", 1, "A1"}, {"wrong clock", 1, "A1"}}, p.Excluded)
}

// Of rows that compete the best in each column is marked, and who it is most often is said; and why
// that cannot be relied on, where it cannot.
func TestRanked(t *testing.T) {
	ranked := func(off string, settings map[string][]string) string {
		text := "experiment: Q1\nUnit commit-p50-ms better=lower\nUnit B/ent better=lower\nmachine-off: " + off + "\n"
		for _, layout := range slices.Sorted(maps.Keys(settings)) {
			for _, values := range settings[layout] {
				text += "BenchmarkFirstLook/engine=sqlite/layout=" + layout + " 1 " + values + "\n"
			}
		}
		var out bytes.Buffer
		require.NoError(t, writeText(&out, load(t, text), experiment(t, "Q1")))
		return out.String()
	}
	four := func(text string, times ...float64) (list []string) {
		for _, v := range times {
			list = append(list, fmt.Sprintf(text, v))
		}
		return list
	}
	arkiv := four("%v commit-p50-ms 700 B/ent", 9, 10, 10, 11)
	apart := map[string][]string{"arkiv": arkiv, "compact": four("%v commit-p50-ms 300 B/ent", 1, 2, 2, 3)}
	require.Equal(t, `blocks of 100 entities, ms
| engine | layout  |  commit | B/entity |
|--------|---------|--------:|---------:|
| sqlite | arkiv   | × 5.36  |     700  |
| sqlite | compact |      2* |     300* |
one sitting, × is a ratio to sqlite compact of the same sittings
* is the best of a column, ≈ is not told apart from it
Best in 2 of 2 columns, in these sittings: sqlite compact.

`, ranked("", apart))
	require.Contains(t, ranked("others are busy", apart), "sqlite compact. Not to be relied on: the machine was not\nat rest (†).\n")
	near := ranked("", map[string][]string{"arkiv": arkiv, "simple": four("%v commit-p50-ms 700 B/ent", 8, 9.5, 9.6, 10.5)})
	require.Contains(t, near, " 10≈ ")
	require.Contains(t, near, "sqlite simple. Not to be relied on: in 1 columns others\nare not told apart from the best.\n")
	few := ranked("", map[string][]string{"arkiv": {"9 commit-p50-ms 1 B/ent"}, "compact": {"1 commit-p50-ms 2 B/ent"}})
	require.Contains(t, few, " × 9≈ ")
	require.Contains(t, few, "Best in 1 of 2 columns, in these sittings: sqlite arkiv and sqlite compact.")
}

// The sitting is the unit: a figure is the median of the sittings' medians with their smallest and
// largest, and that of one sitting has the range of its runs.
func TestFigure(t *testing.T) {
	f := report.NewFigure([]report.Runs{{"1", "a", []float64{1, 2, 3, 4, 100}}})
	require.Equal(t, []float64{1, 3, 1, 100}, []float64{float64(f.N), f.Center, f.Lo, f.Hi})
	require.Equal(t, "3 (1–100, one sitting)", f.String())
	many := make([]float64, 100)
	for i := range many {
		many[i] = float64(i)
	}
	f = report.NewFigure([]report.Runs{{"1", "a", many}, {"2", "a", []float64{5, 6, 8}}, {"3", "b", []float64{90}}})
	require.Equal(t, []float64{3, 2, 49.5, 6, 90}, []float64{float64(f.N), float64(f.Hosts), f.Center, f.Lo, f.Hi})
	require.Equal(t, "49.5 rows/s (6–90, n=3, 2 hosts)", f.In("rows/s"))
	require.Equal(t, "5.5 (5–6, n=2, one host)", report.NewFigure([]report.Runs{{"1", "a", []float64{5}}, {"2", "a", []float64{6}}}).String())
	require.Equal(t, "5 (one run)", report.NewFigure([]report.Runs{{"1", "a", []float64{5}}}).String())
	require.Nil(t, report.NewFigure(nil))
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 7: "7", 0.0135: "0.0135", 1.5: "1.5", 19.84: "19.8", 886.4: "886", 999.7: "1,000", 5380.1: "5,380",
		9999.7: "10K", 24_256: "24.3K", 999_600: "1M", 1.2574e6: "1.26M", -0.0608: "-0.0608", 2.5e9: "2.5G",
	} {
		require.Equal(t, want, report.Number(v), v)
	}
}

// Tables of everything that the campaign measured can be made, and none mixes settings. The designed
// experiment gives the coefficients that EXPERIMENTS.md has.
func TestCampaign(t *testing.T) {
	s, err := published.set("campaign")
	require.NoError(t, err)
	p, err := report.NewPage(s, "Campaign", lab.Sections())
	require.NoError(t, err)
	require.NoError(t, p.Check())
	require.Len(t, p.Questions, 5)
	answers := p.Answers()
	for _, a := range answers {
		for _, table := range a.Tables {
			require.False(t, table.Empty(), "%s %s", a.ID, table.Title)
			for _, row := range table.Rows {
				require.Len(t, row, len(table.Heads), "%s %s", a.ID, table.Title)
			}
		}
	}
	fit := answers[slices.IndexFunc(answers, func(a report.Answer) bool { return a.ID == "A14" })].Tables[0]
	require.Equal(t, "204 (169–239)", fit.Rows[3][2].String())
	require.Equal(t, "0.955", fit.Rows[3][len(fit.Rows[3])-3].String())
	for _, q := range p.Questions {
		for _, pic := range q.Pictures {
			require.True(t, bytes.HasPrefix(pic.SVG, []byte("<svg")))
		}
	}
	var text bytes.Buffer
	require.NoError(t, report.WriteMarkdown(&text, p, func(*report.Picture) string { return "" }))
	require.Contains(t, text.String(), "764–1,311, n=2", "the run of D5 that was left out counts")
	require.NotContains(t, text.String(), "NaN")
}

func TestLoadErrors(t *testing.T) {
	_, err := report.Load(t.TempDir())
	require.ErrorContains(t, err, "no result files")
	_, err = report.Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Len(t, load(t, "BenchmarkX 1 torn\n").Warnings, 1)
}

// A page of a line that cannot be read, or of a table that mixes settings, is not to be published. What
// was measured in several sittings says in which.
func TestCheck(t *testing.T) {
	const load1 = "experiment: B1\nsitting: b\nBenchmarkLoad/engine=sqlite/durability=durable/scale=1 1 5 rows/s\nsitting: a\n"
	for text, want := range map[string]string{
		load1 + "BenchmarkLoad/engine=sqlite/durability=unsafe/scale=1 1 5 rows/s\n":  "mixes durability",
		load1 + "BenchmarkLoad/engine=sqlite/durability=durable/scale=2 1 torn\n":     "A1-sqlite-1.txt",
		load1 + "BenchmarkLoad/engine=sqlite/durability=durable/scale=2 1 5 rows/s\n": "",
	} {
		p, err := report.NewPage(load(t, text), "", lab.Sections())
		require.NoError(t, err)
		if want != "" {
			require.ErrorContains(t, p.Check(), want)
			continue
		}
		require.NoError(t, p.Check())
		table := p.Sections[1].Answers[0].Tables[0]
		require.Equal(t, []string{"sittings", "one run (2)", "one run (1)"}, []string{table.Heads[2], table.Rows[0][2].String(), table.Rows[1][2].String()})
	}
}

// Blocks become what each thing in them adds to a commit, and how it goes with its time.
func TestFit(t *testing.T) {
	var text strings.Builder
	text.WriteString("experiment: A8\n")
	for i := range 40 {
		entities, strs := float64(i%8+1), float64((i*7)%11)
		fmt.Fprintf(&text, "BenchmarkBlock/engine=sqlite/layout=arkiv/profile=mendoza/blocks=40/block=%d 1 %v ms %v entities %v strings\n",
			i+1, 1+2*entities+0.5*strs+0.01*float64(i%3), entities, strs)
	}
	var out bytes.Buffer
	require.NoError(t, writeText(&out, load(t, text.String()), experiment(t, "A8")))
	for _, want := range []string{"| 2,000 (", "| 500 (", "R²", "|     40 |"} {
		require.Contains(t, out.String(), want)
	}
}
