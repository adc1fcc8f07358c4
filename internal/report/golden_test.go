package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/reporttest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The page of a small set, without the chart library, and the Markdown tables of
// the same.
func TestGolden(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, reporttest.Write(dir, reporttest.Full(reporttest.Options{
		Engines: []string{"sqlite", "duckdb"}, Layouts: []string{"arkiv"}, Seconds: 4, Repeats: 2,
		Only: []string{"A5", "A14", "D1", "D5"},
	})))
	results, err := result.Read(dir)
	require.NoError(t, err)
	in := &Input{Title: "Results", Results: results, Catalogue: []Entry{
		{ID: "A5", Title: "Full schema", Question: "How many entities a second?", Earlier: "714"},
	}}

	p, err := newPage(in)
	require.NoError(t, err)
	p.Style, p.Script, p.Library = "", "", ""
	var page bytes.Buffer
	require.NoError(t, p.write(&page))
	golden(t, "page.golden.html", page.Bytes())

	var text bytes.Buffer
	for _, id := range []string{"A5", "A6", "A14", "D1", "D5"} {
		text.WriteString("## " + id + "\n\n" + Markdown(Brief(in, id)) + "\n")
	}
	golden(t, "tables.golden.md", text.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; if that is meant, run the test with -update\n%s", name, diff)
	}
}

// The library must not end the element that it is in.
func TestLibraryFitsIntoThePage(t *testing.T) {
	require.NotContains(t, chartLibrary, "</script")
	require.NotContains(t, pageScript, "</script")
	require.NotContains(t, pageStyle, "</style")
}

// Figures of charts have the digits that can be seen.
func TestNum(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1.23456: "1.235", 0.000123456: "0.0001235", 123456: "1.235e+05", -9.87654: "-9.877"} {
		text, err := json.Marshal(num(v))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// A long run is thinned out, and its worst seconds stay.
func TestThin(t *testing.T) {
	var line []result.Second
	for i := range 1000 {
		s := result.Second{At: float64(i + 1), Count: 1, P99: 5, Max: 6}
		if i == 501 {
			s.Max = 700
		}
		line = append(line, s)
	}
	short := thin(line)
	require.LessOrEqual(t, len(short), maxSeconds)
	var count int64
	var longest int64
	for _, s := range short {
		count += s.Count
		longest = max(longest, int64(s.Max))
	}
	require.EqualValues(t, 1000, count)
	require.EqualValues(t, 700, longest)
	require.InDelta(t, 1000, short[len(short)-1].At, 0)
}

// The regression finds what the observations were made of.
func TestFitDesign(t *testing.T) {
	table := &result.Table{Columns: []string{"attributes", "payload_bytes", "entities", "ms"}}
	for i, a := range []float64{2, 8, 24} {
		for j, p := range []float64{256, 5120, 51200} {
			for k, e := range []float64{10, 40, 120} {
				wobble := 0.01 * float64((i+2*j+3*k)%5-2)
				table.Rows = append(table.Rows, []float64{a, p, e, 1 + e*(0.05+0.01*a+0.004*p/1024) + wobble})
			}
		}
	}
	fit, err := fitDesign(table)
	require.NoError(t, err)
	for i, want := range []float64{0.05, 0.01, 0.004} {
		term := designTerms[i]
		c := fit.Term(term)
		require.InEpsilon(t, want, c.Coefficient, 0.02, term)
		require.Less(t, c.Low, want)
		require.Greater(t, c.High, want)
	}
	_, err = fitDesign(&result.Table{Columns: []string{"ms"}})
	require.ErrorContains(t, err, "no columns attributes")
}

func TestBestIn(t *testing.T) {
	v := func(values ...float64) []Cell {
		row := make([]Cell, len(values))
		for i := range values {
			if values[i] >= 0 {
				row[i].Value = &values[i]
			}
		}
		return row
	}
	for _, tt := range []struct {
		row  []Cell
		good result.Direction
		want int
	}{
		{v(3, 2, 5), result.Lower, 1}, {v(3, 2, 5), result.Higher, 2}, {v(0, 0, 7), result.Lower, -1}, {v(0, 4, 7), result.Lower, 0},
		{v(5), result.Lower, -1}, {v(-1, 5), result.Lower, -1}, {v(-1, 5, 4), result.Lower, 2}, {v(), result.Lower, -1}, {v(2, 2, 1), result.Lower, 2},
	} {
		require.Equal(t, tt.want, bestIn(tt.row, tt.good))
	}
}

// Settings are parted by the key that leaves the most together.
func TestSplit(t *testing.T) {
	in := &Input{loose: true, Results: &result.Results{Records: reporttest.Full(reporttest.Options{Seconds: 1, Only: []string{"A12", "C1"}})}}
	by, parts := in.experiment("A12").pivots[0].split()
	require.Equal(t, 1, by)
	require.Len(t, parts, 3)
	require.Len(t, parts[0], 14)
}

// What stands first in blocks in random order stands first in no table.
func TestRowsInNaturalOrder(t *testing.T) {
	values := []string{"arkiv-10", "max", "6000", "arkiv-2", "arkiv", "100", "typical-256B", "typical", "0.05"}
	slices.SortFunc(values, natural)
	require.Equal(t, []string{"0.05", "100", "6000", "arkiv", "arkiv-2", "arkiv-10", "max", "typical", "typical-256B"}, values)
}
