package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

const ownData = "../../testdata/arkiv-small/"

// TestRunOnSource: experiments run on a database of Arkiv's, in processes that read one block tar,
// which stays for the next run.
func TestRunOnSource(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(bench.CacheEnv, cache)
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	args := []string{
		"run", "C1", "D3", "--source=" + ownData + "sqlite-store.db", "--engines=sqlite,duckdb", "--layouts=compact",
		"--repeats=1", "--no-probe", "--phase=50ms", "--out=" + out,
	}
	must(t, args...)
	must(t, args...)
	tars, err := filepath.Glob(filepath.Join(cache, "source-*", "sqlite-store.tar"))
	require.NoError(t, err)
	require.Len(t, tars, 1)
	names := map[string]int{}
	for _, r := range lines(t, out) {
		name := string(r.Name)
		of, _, _ := strings.Cut(name, "/")
		names[of]++
		require.Contains(t, name, "/profile=own-sqlite-store/durability=durable/scale=1/")
		require.Equal(t, tars[0], r.GetConfig("source"))
		if strings.HasPrefix(name, "ReadMix") {
			require.Contains(t, name, "/mix=W/")
		}
	}
	require.Equal(t, map[string]int{"ReadMix": 4, "Reorg": 2}, names, "engines and clients")
}

// TestCompareOnSource: engines stand side by side on a source.
func TestCompareOnSource(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	must(t, "compare", "sqlite", "duckdb", "--source="+ownData+"blocks.tar", "--layouts=compact", "--repeats=1", "--commits=20", "--out="+out)
	measured := slices.DeleteFunc(lines(t, out), func(r *benchfmt.Result) bool { return r.GetConfig("experiment") != "Q1" })
	require.Len(t, measured, 2)
	for _, r := range measured {
		require.Contains(t, string(r.Name), "RealBlocks/")
		require.Contains(t, string(r.Name), "/profile=own-blocks/")
		for _, unit := range []string{"load-s", "commit-p50-ms", "get-p50-ms", "query-p50-ms", "B/ent"} {
			_, has := figure(r, unit)
			require.True(t, has, "%s of %s", unit, r.Name)
		}
	}
	require.Equal(t, measured[0].GetConfig("head-digest"), measured[1].GetConfig("head-digest"))
}

func TestSourceUsage(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	require.NotContains(t, must(t, "run", "--list", "--source=x"), "A5")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", "A5", "--source=" + ownData + "blocks.tar"}, cli.ExitUsage, "A5 asks for the base profile or data of its own"},
		{[]string{"run", "C1", "--source=mendoza:x=1"}, cli.ExitUsage, "unknown parameter"},
		{[]string{"run", "C1", "--source=run_test.go"}, cli.ExitError, "neither a block tar nor a SQLite database"},
		{[]string{"compare", "sqlite", "--source=none.tar"}, cli.ExitError, "none.tar"},
	} {
		if c.args[0] == "run" {
			c.args = append(c.args, "--engines=sqlite", "--out="+t.TempDir())
		}
		_, errs, code := varve(t, c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, errs)
		require.Contains(t, errs, c.says)
	}
}
