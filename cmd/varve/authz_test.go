package main

import (
	"slices"
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

// rebacRun is a run that takes a moment.
var rebacRun = []string{"authz", "rebac", "--engines=sqlite", "--size=tiny", "--clients=1,2", "--duration=20ms", "--repeats=2"}

// TestRebac measures permissions on one engine in processes of their own, and keeps the
// measurements: eight scenarios, two closures, two numbers of clients. The same again
// has nothing left to do.
func TestRebac(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	run := slices.Concat(rebacRun, []string{"--out=" + out, "--dir=" + t.TempDir()})
	must(t, run...)
	list := named(t, out)
	require.Len(t, list["RebacIngest"], 2)
	size, ok := figure(list["RebacIngest"][0], "data-MB")
	require.True(t, ok)
	require.Positive(t, size)
	require.Len(t, list["Rebac"], 8*2*2*2)
	asked := 0
	for _, r := range list["Rebac"] {
		failed, _ := figure(r, "errors")
		require.Zero(t, failed)
		asked += r.Iters
	}
	require.Greater(t, asked, len(list["Rebac"]))
	must(t, run...)
	require.Len(t, named(t, out)["Rebac"], 8*2*2*2)
}

// TestRebacTable prints a table of ingest and one of each figure.
func TestRebacTable(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	out := must(t, append(rebacRun, "--closures=on-the-fly")...)
	for _, want := range []string{"profile tiny", "ingest-s", "p95-ms", "check-view-hierarchy", "list-users-view"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "materialised")
}

func TestRebacUsage(t *testing.T) {
	for _, args := range [][]string{{"--size=huge"}, {"--engines=oracle"}, {"--clients=0"}, {"--duration=0s"}, {"--durability=none"}, {"--memory=lots"}, {"--closures=none"}} {
		_, errs, code := varve(t, append([]string{"authz", "rebac"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, errs)
	}
}

// socialRun puts load on one engine in a process of its own.
func socialRun(t *testing.T, args ...string) string {
	t.Helper()
	t.Setenv(clitest.AsCommand, "1")
	t.Setenv(bench.CacheEnv, t.TempDir())
	return must(t, append([]string{"authz", "social", "--engines=sqlite", "--relationships=5000", "--repeats=1"}, args...)...)
}

// TestSocial measures twice into the same directory and prints both.
func TestSocial(t *testing.T) {
	dir := t.TempDir()
	socialRun(t, "--out="+dir, "--qps=300", "--duration=1s")
	out := socialRun(t, "--out="+dir, "--qps=100,200", "--duration=300ms")
	list := named(t, dir)
	require.Len(t, list["SocialLoad"], 1)
	size, _ := figure(list["SocialLoad"][0], "B/rel")
	require.Positive(t, size)
	require.Len(t, list["Social"], 3)
	for _, unit := range []string{"check-p95-ms", "write-p95-ms", "share-success", "levels-missed"} {
		_, has := figure(list["Social"][0], unit)
		require.True(t, has, unit)
		require.Contains(t, out, unit)
	}
	require.Regexp(t, `\| +200 +\|`, out)
}

// TestSocialHopeless: a rate that no machine carries is recorded as missed.
func TestSocialHopeless(t *testing.T) {
	dir := t.TempDir()
	socialRun(t, "--qps=3000000", "--duration=100ms", "--out="+dir)
	missed, _ := figure(named(t, dir)["Social"][0], "levels-missed")
	require.Positive(t, missed)
}

func TestSocialUsage(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"unknown engine", []string{"--engines=mysql"}},
		{"from 5000 to", []string{"--relationships=10"}},
		{"--qps", []string{"--qps=0"}},
		{"--duration", []string{"--duration=-1s"}},
		{"unknown durability", []string{"--durability=never"}},
		{"memory", []string{"--memory=lots"}},
	} {
		_, errs, code := varve(t, append([]string{"authz", "social"}, c.args...)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, c.want)
	}
}
