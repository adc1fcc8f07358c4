package sqlite_test

import (
	"bytes"
	"os"
	process "os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
)

// TestUnits: a line of go test -bench has at most six figures unless more are
// asked for, and a read has no bytes written.
func TestUnits(t *testing.T) {
	units := func(args ...string) map[string][]string {
		cmd := process.Command(os.Args[0], append(args, "-test.run=^$", "-varve.scale=0.0005",
			"-test.bench=^Benchmark(Commit|Get)$/./compact", "-test.benchtime=100x")...)
		cmd.Env = append(os.Environ(), bench.CacheEnv+"="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		found := map[string][]string{}
		for lines := benchfmt.NewReader(bytes.NewReader(out), ""); lines.Scan(); {
			if r, ok := lines.Result().(*benchfmt.Result); ok {
				for _, v := range r.Values {
					unit := v.OrigUnit
					if unit == "" {
						unit = v.Unit
					}
					found[string(r.Name.Base())] = append(found[string(r.Name.Base())], unit)
				}
			}
		}
		return found
	}
	commit := []string{"ns/op", "p50-ns", "p99-ns", "rows/s", "cpu-ns/op", "write-B/op"}
	get := []string{"ns/op", "p50-ns", "p99-ns", "cpu-ns/op"}
	few := units()
	require.ElementsMatch(t, commit, few["Commit"])
	require.ElementsMatch(t, get, few["Get"])
	all := units("-varve.costs", "-test.benchmem")
	require.Subset(t, all["Commit"], append(commit, "B/op", "allocs/op"))
	require.Subset(t, append(get, "B/op", "allocs/op", "read-B/op"), all["Get"])
	if os.Geteuid() == 0 {
		require.Contains(t, all["Commit"], "syncs/op")
	}
}
