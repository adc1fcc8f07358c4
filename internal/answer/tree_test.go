package answer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

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
		text.WriteString("excluded:\nphase:\nhost:\nsitting:\n")
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
	return answer.Evaluate(set, page.Questions)
}

func growth(engine string, values ...string) lines {
	return lines{"D1", "Sustained/engine=" + engine + "/layout=compact/scale=5/rate=6000", values}
}

// killed is a run that the kernel ended.
func killed(engine string) lines {
	l := growth(engine, "1 failed")
	l.experiment += "\nexcluded: error: the kernel killed 1 processes"
	return l
}

// The tree goes on after a fail, ends at a pass, and stops where the result is
// unknown.
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
		"a fail is no unknown":  {[]lines{growth("sqlite", "600 p99-ms", "700 p99-ms", "800 p99-ms")}, "not known: measure libsql first"},
		"one was killed":        {[]lines{growth("sqlite", good...), killed("sqlite")}, "not known: measure libsql first"},
		"all were killed":       {[]lines{killed("sqlite")}, "not known: measure libsql first"},
		"the other was killed":  {[]lines{growth("sqlite", good...), killed("libsql")}, "stay with SQLite"},
		"another size":          {[]lines{{"D1", "Sustained/engine=sqlite/layout=compact/scale=4/rate=6000", good}}, "not known: measure sqlite first"},
		"another experiment":    {[]lines{{"D5", "Degradation/engine=sqlite/layout=compact/scale=5", good}}, "not known: nothing was measured"},
		"the maximum is enough": {[]lines{growth("sqlite", "90 max-ms 5990 rows/s", "90 max-ms 5990 rows/s", "95 max-ms 5990 rows/s")}, "stay with SQLite"},
		"a maximum proves no fail": {[]lines{growth("sqlite", "900 max-ms 5990 rows/s", "900 max-ms 5990 rows/s", "950 max-ms 5990 rows/s")},
			"not known: measure sqlite first"},
	} {
		t.Run(name, func(t *testing.T) {
			a := evaluate(t, tt.all...)
			a.Walks = append(a.Walks, answer.Walk{Leaf: "not known: nothing was measured"})
			require.Equal(t, tt.leaf, a.Walks[0].Leaf)
		})
	}
}

// Of several hosts the worst one counts, and none is made better by another.
func TestWorseHost(t *testing.T) {
	on := func(host string, values ...string) lines {
		return lines{"C1\nhost: " + host, "ReadMix/engine=sqlite/layout=compact/scale=1/mix=B/clients=1", values}
	}
	fast := on("a", "5000 qps", "5100 qps", "5200 qps")
	r := evaluate(t, fast)
	require.Equal(t, answer.Pass, r.Candidates[0].Parts[1].Criteria[1].Outcome)
	r = evaluate(t, fast, on("b", "500 qps", "510 qps", "520 qps"))
	c := r.Candidates[0].Parts[1].Criteria[1]
	require.Equal(t, answer.Fail, c.Outcome)
	require.InDelta(t, 510, c.Figure.Center, 0)
}

// Exactly at the limit is not below it, and is at least it.
func TestAtTheLimit(t *testing.T) {
	at := func(values string) answer.Part {
		return evaluate(t, growth("sqlite", values, values, values)).Candidates[0].Parts[0]
	}
	require.Equal(t, answer.Fail, at("500 p99-ms 5700 rows/s").Criteria[0].Outcome)
	require.Equal(t, answer.Pass, at("499.9 p99-ms 5700 rows/s").Criteria[0].Outcome)
	require.Equal(t, answer.Pass, at("500 p99-ms 5700 rows/s").Criteria[1].Outcome)
	require.Equal(t, answer.Fail, at("500 p99-ms 5699 rows/s").Criteria[1].Outcome)
}

// A killed process took its measurements with it: another repeat has that line,
// and this one has not.
func TestKilledProcess(t *testing.T) {
	repeat := func(n int, l lines) lines { l.experiment += fmt.Sprintf("\nsitting: 1\nrepeat: %d", n); return l }
	all := []lines{
		repeat(1, growth("sqlite", "30 p99-ms 5990 rows/s")), repeat(2, growth("sqlite", "30 p99-ms 5990 rows/s")), repeat(3, growth("sqlite", "30 p99-ms 5990 rows/s")),
	}
	run := func(n int) lines {
		return repeat(n, lines{"D1\nexcluded: error: signal: killed", "Run/engine=sqlite", []string{"1 failed"}})
	}
	require.Equal(t, answer.Pass, evaluate(t, append(all, run(3))...).Candidates[0].Parts[0].Outcome, "what it had measured before")
	elsewhere := run(4)
	elsewhere.experiment += "\nsitting: 2"
	require.Equal(t, answer.Pass, evaluate(t, append(all, elsewhere)...).Candidates[0].Parts[0].Outcome, "it may have been asked for something else")
	named := run(4)
	named.experiment = strings.Replace(named.experiment, "signal: killed", "signal: killed: D1 "+all[0].name+", repeat 4", 1)
	require.Equal(t, answer.Fail, evaluate(t, append(all, named)...).Candidates[0].Parts[0].Outcome)
	named.experiment = strings.Replace(named.experiment, "rate=6000", "rate=max", 1)
	require.Equal(t, answer.Pass, evaluate(t, append(all, named)...).Candidates[0].Parts[0].Outcome, "it was measuring something else")
	require.Equal(t, answer.Fail, evaluate(t, append(all, run(4))...).Candidates[0].Parts[0].Outcome)
}

// The campaign measured nothing at five times the size in D1, and never asked for 50,000 rows with
// 10,000 reads a second.
func TestCampaign(t *testing.T) {
	r := of(t, "../../docs/results/campaign")
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.Regexp(t, `compact +not known: measure sqlite first`, text.String())
	require.Regexp(t, `reads/s of mix A, one client, scale 1 +≥ 1,000 reads/s +4,371 .4,357–4,413, one sitting. +pass\n`, text.String())
	require.Contains(t, text.String(), "  V1, upper end, 621,000 entities: unknown, not asked\n")
}

// Answers from whole sets are one screen, and a verdict has two sentences at
// most. With -v they have every table and criterion.
func TestScreen(t *testing.T) {
	for _, name := range []string{"answers", "campaign", "second-host"} {
		set, err := report.Load("../../docs/results/" + name)
		require.NoError(t, err)
		page, err := report.NewPage(set, "", nil)
		require.NoError(t, err)
		a := answer.Evaluate(set, page.Questions)
		var text strings.Builder
		require.NoError(t, a.WriteShort(&text, page.Glance))
		require.LessOrEqual(t, strings.Count(text.String(), "\n"), 40, "%s:\n%s", name, &text)
		require.Contains(t, text.String(), "most rows/s |", name)
		for line := range strings.Lines(text.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), report.Width+1, "%s: %s", name, line)
		}
		for _, q := range a.Questions {
			require.LessOrEqual(t, strings.Count(q.Sentence, ". ")+1, 2, q.Sentence)
		}
		var all strings.Builder
		require.NoError(t, a.WriteText(&all))
		require.Greater(t, strings.Count(all.String(), "\n"), 100)
	}

	// Rows for which there is no room are counted.
	var many []lines
	for i := range 60 {
		many = append(many, lines{"D1", fmt.Sprintf("Sustained/engine=e%d/layout=compact/scale=1/rate=max", i), []string{"5 settled-rows/s"}})
	}
	a, page := evaluate(t, many...), &report.Table{Heads: []string{"engine"}, Keys: 1}
	for i := range 60 {
		page.Rows = append(page.Rows, []report.Cell{{Text: fmt.Sprint("e", i)}})
	}
	for i := range a.Questions {
		a.Questions[i].Sentence = "short"
	}
	var text strings.Builder
	require.NoError(t, a.WriteShort(&text, page))
	require.Equal(t, 40, strings.Count(text.String(), "\n"), text.String())
	require.Regexp(t, `\n\d+ more rows are in the page and with -v\n`, text.String())
}

func TestNothing(t *testing.T) {
	r := evaluate(t, lines{"A1", "Insert/engine=sqlite", []string{"1 rows/s"}})
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "not known: nothing was measured")
	text.Reset()
	require.NoError(t, evaluate(t, lines{"I5", "V1/engine=sqlite/layout=compact/scale=0.77625/rate=10000/qps=1000", []string{"1 rows/s"}}).WriteText(&text))
	require.Regexp(t, "one client, scale 1 .* unknown, not measured\n", text.String())
	require.Regexp(t, "1,000 reads/s: reads/s .* unknown, not asked\n", text.String())
	require.Contains(t, text.String(), "V1, upper end, 621,000 entities: unknown, not asked\n")
}
