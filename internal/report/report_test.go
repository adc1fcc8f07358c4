package report_test

import (
	"bytes"
	"fmt"
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

const campaign = "../../docs/results/campaign"

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

// A row is of one host where several measured the same, three times on one of them.
func TestTableOfHosts(t *testing.T) {
	s := load(t, inserts+"host: c-d\nsitting: 2\nBenchmarkInsert/engine=sqlite/indexes=0/mode=bulk/rows=1000 1 5 rows/s\n")
	table, err := s.Table(report.View{Filter: "/rows:1000 /engine:sqlite /indexes:0", Rows: "/engine", Columns: []report.Column{{Unit: "rows/s"}}})
	require.NoError(t, err)
	require.Equal(t, [][]report.Cell{{{Text: "sqlite"}, {"100", "90–110, n=3"}, {Text: "1"}}, {{Text: "sqlite"}, {"5", "n=1"}, {Text: "2"}}}, table.Rows)
}

// A table has medians with their ranges and numbers, marks what was measured while the machine was
// off, leaves out what is excluded, and has published figures beside ours.
func TestTable(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, report.WriteText(&text, load(t, inserts), experiment(t, "A1")))
	require.Equal(t, `**rows/s**

| indexes | mode |            sqlite |  duckdb | Arkiv-report, rows/s |
|---------|------|------------------:|--------:|---------------------:|
| 0       | bulk | 100 (90–110, n=3) | 7 (n=1) |          1.97M (n=1) |
| 6       | bulk |  50† (48–52, n=3) |       – |           250K (n=1) |

rows 1000, one sitting

**change of rows/s**

| indexes | of   |              sqlite | duckdb | Arkiv-report |
|---------|------|--------------------:|-------:|-------------:|
| 0 → 6   | bulk | ~ ÷ 2 (p=0.100 n=3) |      – |       ÷ 7.88 |

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
		require.NoError(t, report.WriteText(&out, load(t, text), experiment(t, "Q1")))
		return out.String()
	}
	arkiv := []string{"9 commit-p50-ms 700 B/ent", "10 commit-p50-ms 700 B/ent", "11 commit-p50-ms 700 B/ent"}
	apart := map[string][]string{"arkiv": arkiv, "compact": {"1 commit-p50-ms 300 B/ent", "2 commit-p50-ms 300 B/ent", "3 commit-p50-ms 300 B/ent"}}
	require.Equal(t, `**blocks of 100 entities, ms**

| engine | layout  |  commit | its p99 | get | query | load, s | B/entity |
|--------|---------|--------:|--------:|----:|------:|--------:|---------:|
| sqlite | arkiv   | 10±10%  |       – |   – |     – |       – |     700  |
| sqlite | compact |  2±50%* |       – |   – |     – |       – |     300* |

one sitting, n=3 each
± is half of the range, * the best of a column,
≈ not told apart from it: the ranges overlap, or are of fewer than 3.

sqlite compact is the best in 2 of 2 columns.

`, ranked("", apart))
	require.Contains(t, ranked("others are busy", apart), "2 of 2 columns, but this cannot be relied on: the machine was not at rest, others are busy.\n")
	require.Contains(t, ranked("", map[string][]string{"arkiv": arkiv, "simple": {"8 commit-p50-ms 700 B/ent", "9.5 commit-p50-ms 700 B/ent", "10.5 commit-p50-ms 700 B/ent"}}),
		"sqlite simple is the best in 2 of 2 columns, but this cannot be relied on: in 1 of its columns others are not told apart from sqlite simple.\n")
	few := ranked("", map[string][]string{"arkiv": {"9 commit-p50-ms 1 B/ent"}, "compact": {"1 commit-p50-ms 2 B/ent"}})
	require.Contains(t, few, " 9≈ ")
	require.Contains(t, few, "sqlite arkiv and sqlite compact are each the best in 1 of 2 columns, but")
}

// From six measurements on the interval is that of order statistics; below that it is the range.
func TestFigure(t *testing.T) {
	f := report.NewFigure([]float64{1, 2, 3, 4, 100}, false)
	require.Equal(t, []float64{3, 1, 100}, []float64{f.Center, f.Lo, f.Hi})
	f = report.NewFigure([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, false)
	require.Equal(t, []float64{5.5, 2, 9}, []float64{f.Center, f.Lo, f.Hi})
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
	s, err := report.Load(campaign)
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
	require.Equal(t, "202 (181–224)", fit.Rows[3][2].String())
	require.Equal(t, "0.847", fit.Rows[3][len(fit.Rows[3])-2].String())
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
		require.Equal(t, []string{"sitting", "2", "1"}, []string{table.Heads[2], table.Rows[0][2].Text, table.Rows[1][2].Text})
	}
}

// Equal values in samples of different sizes give one p-value, whichever comes first.
func TestTestIsSymmetric(t *testing.T) {
	a, b := report.NewFigure([]float64{1, 1, 2, 3}, false), report.NewFigure([]float64{2, 2, 3, 4, 4, 5, 1}, false)
	require.Equal(t, report.Test(a, b).P, report.Test(b, a).P)
	require.Equal(t, 1.0, report.Test(a, a).P)
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
	require.NoError(t, report.WriteText(&out, load(t, text.String()), experiment(t, "A8")))
	for _, want := range []string{"| 2,000 (", "| 500 (", "R²", "|      40 |"} {
		require.Contains(t, out.String(), want)
	}
}
