package result

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

// TestUnits: benchstat scales the units of files, everything in memory has those
// that people read, and a file of before is read like a new one.
func TestUnits(t *testing.T) {
	for _, tt := range []struct{ memory, file, scaled string }{
		{"235.8 p50-ms", "2.358e+08 p50-ns", "p50-sec"},
		{"0.179 read-p99-ms-A", "179000 read-p99-ns-A", "read-p99-sec-A"},
		{"3.5 ms", "3.5e+06 ns", "sec"},
		{"0.25 p99-ms-B", "250000 p99-ns-B", "p99-sec-B"},
		{"510 qps-B", "510 qps-B", "qps-B"},
		{"5157.998592 data-MB", "5157.998592 data-MB", "data-B"},
		{"228765 ns/op", "228765 ns/op", "sec/op"},
		{"4096 write-B/op", "4096 write-B/op", "write-B/op"},
		{"171.2 B/ent", "171.2 B/ent", "B/ent"},
		{"1800 copy-MB/s", "1800 copy-MB/s", "copy-B/s"},
		{"4371 rows/s", "4371 rows/s", "rows/s"},
	} {
		unit := strings.Fields(tt.file)[1]
		text := "Unit " + unit + " better=lower\nBenchmarkX 1 " + tt.file + "\n"
		for _, text := range []string{text, strings.ReplaceAll(text, tt.file, tt.memory)} {
			var got *benchfmt.Result
			units, err := Read(strings.NewReader(text), "x", func(r benchfmt.Record) error {
				got, _ = r.(*benchfmt.Result)
				return nil
			})
			require.NoError(t, err)
			var out bytes.Buffer
			require.NoError(t, benchfmt.NewWriter(&out).Write(got))
			require.Equal(t, "BenchmarkX 1 "+tt.memory+"\n", out.String())
			require.Equal(t, -1, units.GetBetter(got.Values[0].Unit), tt.memory)

			got.Values[0] = ForFile(got.Values[0])
			out.Reset()
			require.NoError(t, benchfmt.NewWriter(&out).Write(got))
			require.Equal(t, "BenchmarkX 1 "+tt.file+"\n", out.String())
			lines := benchfmt.NewReader(&out, "x")
			require.True(t, lines.Scan())
			require.Equal(t, tt.scaled, lines.Result().(*benchfmt.Result).Values[0].Unit)
		}
	}
}
