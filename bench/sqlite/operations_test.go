package sqlite_test

import (
	"context"
	"os"
	process "os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
)

// TestExperiments: of each experiment of the catalogue one configuration can be measured.
// It takes a minute or more, so .ci/run asks for it.
func TestExperiments(t *testing.T) {
	if !suite.Flags.All() {
		t.Skip("it measures the whole catalogue: -varve.all asks for it")
	}
	suite.Check(t, "")
}

// TestBenchtime: with -benchtime=Nx a benchmark does N operations: go test prints N,
// and heads of stores move by N, which each benchmark checks itself. One operation
// has been made ready and not done.
func TestBenchtime(t *testing.T) {
	for n, pattern := range map[int]string{
		7:  "Commit$/engine=sqlite/layout=compact|Update$/engine=sqlite/layout=compact",
		23: "Get$/engine=sqlite/layout=compact|EventAppendConditional",
	} {
		cmd := process.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "-test.bench="+pattern, "-test.benchtime="+strconv.Itoa(n)+"x", "-varve.scale=0.0025")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		lines := 0
		for line := range strings.Lines(string(out)) {
			if fields := strings.Fields(line); strings.HasPrefix(line, "Benchmark") && len(fields) > 2 {
				lines++
				require.Equal(t, strconv.Itoa(n), fields[1], line)
				require.NotContains(t, line, "allocs/op", "only -benchmem asks for it")
			}
		}
		require.Positive(t, lines, "%s", out)
	}
}

// TestOperations: after single operations of a workload the store has all of
// their effects, and a store without them is found.
func TestOperations(t *testing.T) {
	d := small("compact")
	cp := openSmall(t, d)
	for _, done := range []int64{5, 6} {
		x, err := d.Expectation(cp.Ready)
		require.NoError(t, err)
		cp := openSmall(t, d)
		before, err := cp.Entities.Head(t.Context())
		require.NoError(t, err)
		err = bench.EachCommit(t.Context(), cp.Entities, bench.CommitConfig{Blocks: bench.Blocks(d.Profile, d.Gen.Next(bench.Endless)), Expect: x}, func(ops *bench.Operations) error {
			for range 5 {
				require.NoError(t, ops.Prepare())
				require.NoError(t, ops.Do(t.Context(), 0))
			}
			head, err := cp.Entities.Head(t.Context())
			require.NoError(t, err)
			require.Equal(t, before.Number+5, head.Number)
			return ops.Check(context.Background(), done)
		})
		if done == 5 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, bench.ErrMismatch)
		}
	}
}
