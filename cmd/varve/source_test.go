package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestSourceUsage(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	require.NotContains(t, must(t, "run", "--list", "--source=x"), "A5")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", "A5", "--source=" + ownData + "blocks.tar"}, cli.ExitUsage, "A5 generates its own data; leave --source out"},
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

// TestScaleZero: a scale of zero is no scale, of either stream and wherever one is named.
func TestScaleZero(t *testing.T) {
	for _, src := range []string{"mendoza:scale=0", "dc:scale=0", "mendoza:scale=-1", "mendoza:scale=NaN"} {
		dst := url(t, "a.db")
		for _, args := range [][]string{
			{"import", src, dst}, {"import", src, dst + ".tar"}, {"compare", "--source", src, "sqlite"},
			{"answer", src, "--out", t.TempDir(), "--time=1m"},
		} {
			_, errs, code := varve(t, args...)
			require.NotEqual(t, cli.ExitOK, code, "%s %s", args[0], src)
			require.Contains(t, errs, "scale", "%s %s", args[0], src)
		}
		require.NoFileExists(t, strings.TrimPrefix(dst, "sqlite:"))
	}
}
