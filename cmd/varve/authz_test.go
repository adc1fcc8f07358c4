package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// named returns the lines of a directory by the names of their workloads.
func named(t *testing.T, dir string) map[string][]*benchfmt.Result {
	t.Helper()
	byName := map[string][]*benchfmt.Result{}
	for _, r := range lines(t, dir) {
		base, _ := r.Name.Parts()
		byName[string(base)] = append(byName[string(base)], r)
	}
	return byName
}

// TestRebac measures permissions on one engine in processes of their own, prints tables and keeps
// the measurements: eight scenarios, one closure, two numbers of clients. The same again has
// nothing left to do.
func TestRebac(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	run := []string{
		"authz", "rebac", "--engines=sqlite", "--size=tiny", "--clients=1,2", "--duration=20ms", "--repeats=1",
		"--closures=on-the-fly", "--out=" + out, "--dir=" + t.TempDir(),
	}
	printed := must(t, run...)
	for _, want := range []string{"profile tiny", "ingest-s", "p95-ms", "check-view-hierarchy", "list-users-view"} {
		require.Contains(t, printed, want)
	}
	require.NotContains(t, printed, "materialised")
	list := named(t, out)
	require.Len(t, list["RebacIngest"], 1)
	size, ok := figure(list["RebacIngest"][0], "data-MB")
	require.True(t, ok)
	require.Positive(t, size)
	require.Len(t, list["Rebac"], 8*2)
	for _, r := range list["Rebac"] {
		failed, _ := figure(r, "errors")
		require.Zero(t, failed)
		require.Positive(t, r.Iters)
	}
	must(t, run...)
	require.Len(t, named(t, out)["Rebac"], 8*2)
}

// TestSocial measures at two rates, of which no machine carries the second: that is a result.
func TestSocial(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	t.Setenv(bench.CacheEnv, t.TempDir())
	dir := t.TempDir()
	out := must(t, "authz", "social", "--engines=sqlite", "--relationships=5000", "--repeats=1", "--out="+dir, "--qps=300,3000000", "--duration=1s")
	list := named(t, dir)
	require.Len(t, list["SocialLoad"], 1)
	size, _ := figure(list["SocialLoad"][0], "B/rel")
	require.Positive(t, size)
	require.Len(t, list["Social"], 2)
	for _, unit := range []string{"check-p95-ms", "write-p95-ms", "share-success", "levels-missed"} {
		_, has := figure(list["Social"][0], unit)
		require.True(t, has, unit)
		require.Contains(t, out, unit)
	}
	missed, _ := figure(list["Social"][1], "levels-missed")
	require.Positive(t, missed)
}

func TestAuthzUsage(t *testing.T) {
	for _, args := range [][]string{
		{"rebac", "--size=huge"}, {"rebac", "--engines=oracle"}, {"rebac", "--clients=0"}, {"rebac", "--closures=none"},
		{"social", "--engines=mysql"}, {"social", "--relationships=10"}, {"social", "--qps=0"}, {"social", "--duration=-1s"},
		{"social", "--durability=never"}, {"social", "--memory=lots"},
	} {
		_, errs, code := varve(t, append([]string{"authz"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, errs)
	}
}
