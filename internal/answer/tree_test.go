package answer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/answer"
	"github.com/varvedb/varve/internal/report"
)

// lines are repetitions of a benchmark, each with the values of a column of units.
type lines struct {
	experiment, name string
	values           []string
}

func evaluate(t *testing.T, all ...lines) *answer.Answers {
	t.Helper()
	var text strings.Builder
	for _, l := range all {
		fmt.Fprintf(&text, "experiment: %s\n", l.experiment)
		for _, v := range l.values {
			fmt.Fprintf(&text, "Benchmark%s 1000 %s\n", l.name, v)
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text.String()), 0o600))
	return of(t, dir)
}

func of(t *testing.T, dir string) *answer.Answers {
	t.Helper()
	set, err := report.Load(dir)
	require.NoError(t, err)
	page, err := report.NewPage(set, "", nil)
	require.NoError(t, err)
	a, err := answer.Evaluate(set, page.Questions)
	require.NoError(t, err)
	return a
}

func growth(engine string, values ...string) lines {
	return lines{"D5", "Degradation/engine=" + engine + "/layout=compact/scale=5", values}
}

// The tree goes on after a fail, ends at a pass, and stops where nothing is known.
func TestTree(t *testing.T) {
	good := []string{"30 p99-ms 5990 rows/s", "40 p99-ms 5990 rows/s", "50 p99-ms 5990 rows/s"}
	bad := []string{"600 p99-ms 5990 rows/s", "700 p99-ms 5990 rows/s", "800 p99-ms 5990 rows/s"}
	for name, tt := range map[string]struct {
		all  []lines
		leaf string
	}{
		"first":                 {[]lines{growth("sqlite", good...)}, "stay with SQLite"},
		"second":                {[]lines{growth("sqlite", bad...), growth("libsql", good...)}, "libSQL: the least migration"},
		"none":                  {[]lines{growth("sqlite", bad...), growth("libsql", bad...), growth("postgres", bad...), growth("duckdb", bad...)}, "none: revisit the architecture"},
		"n of two":              {[]lines{growth("sqlite", good[:2]...)}, "not known: measure sqlite first"},
		"the range has it":      {[]lines{growth("sqlite", good[0], good[1], bad[0])}, "not known: measure sqlite first"},
		"rate not carried":      {[]lines{growth("sqlite", "30 p99-ms 5000 rows/s", "30 p99-ms 5000 rows/s", "30 p99-ms 5000 rows/s")}, "not known: measure libsql first"},
		"the maximum is enough": {[]lines{growth("sqlite", "90 max-ms 5990 rows/s", "90 max-ms 5990 rows/s", "95 max-ms 5990 rows/s")}, "stay with SQLite"},
		"a maximum proves no fail": {[]lines{growth("sqlite", "900 max-ms 5990 rows/s", "900 max-ms 5990 rows/s", "950 max-ms 5990 rows/s")},
			"not known: measure sqlite first"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.leaf, evaluate(t, tt.all...).Walks[0].Leaf)
		})
	}
}

// Of two measurements of the same reads the worse one counts.
func TestWorseReads(t *testing.T) {
	capacity := lines{"C1", "ReadMix/engine=sqlite/layout=compact/scale=1/mix=B/clients=1", []string{"5000 qps", "5100 qps", "5200 qps"}}
	r := evaluate(t, capacity)
	require.Equal(t, answer.Pass, r.Candidates[0].Parts[1].Criteria[1].Outcome)
	r = evaluate(t, capacity, lines{"D5", "Degradation/engine=sqlite/layout=compact/scale=1", []string{"500 qps-B", "510 qps-B", "520 qps-B"}})
	c := r.Candidates[0].Parts[1].Criteria[1]
	require.Equal(t, answer.Fail, c.Outcome)
	require.InDelta(t, 510, c.Figure.Center, 0)
}

// The campaign measured nothing at five times the size three times, and never asked for 50,000 rows
// with 10,000 reads a second.
func TestCampaign(t *testing.T) {
	r := of(t, "../../docs/results/campaign")
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.Regexp(t, `compact +not known: measure sqlite first`, text.String())
	require.Regexp(t, `27\.1 \(26–28\.2, n=2\) +unknown, n is below 3`, text.String())
	require.Contains(t, text.String(), "  V1, upper end: unknown, not measured\n")
}

func TestNothing(t *testing.T) {
	r := evaluate(t, lines{"A1", "Insert/engine=sqlite", []string{"1 rows/s"}})
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "not known: nothing was measured")
}
