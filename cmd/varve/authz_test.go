package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// records returns the good records of a result set by name.
func records(t *testing.T, dir string) map[string][]result.Record {
	t.Helper()
	results, err := result.Read(dir)
	require.NoError(t, err)
	require.NotEmpty(t, results.Manifests)
	byName := map[string][]result.Record{}
	for _, r := range results.Records {
		require.Empty(t, r.Error, r.Key())
		require.NotEmpty(t, r.Manifest, r.Key())
		byName[r.Name] = append(byName[r.Name], r)
	}
	return byName
}

// rebacRun is a run that takes a moment.
var rebacRun = []string{"authz", "rebac", "--engines=sqlite", "--size=tiny", "--clients=1,2", "--duration=20ms"}

// TestRebac measures permissions on one engine in a process of its own, and keeps the
// measurements: eight scenarios, two closures, two numbers of clients. The same again
// has nothing left to do.
func TestRebac(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	run := slices.Concat(rebacRun, []string{"--out=" + out, "--dir=" + t.TempDir()})
	must(t, run...)
	list := records(t, out)
	require.Len(t, list["RebacIngest"], 1)
	size, ok := list["RebacIngest"][0].Metric("data-MB")
	require.True(t, ok)
	require.Positive(t, size)
	require.Len(t, list["Rebac"], 8*2*2)
	asked := int64(0)
	for _, r := range list["Rebac"] {
		failed, _ := r.Metric("errors")
		require.Zero(t, failed)
		if d := r.Latency(r.Config.Get("op")); d != nil { // a machine that is busy elsewhere asks nothing in so short a time
			asked += d.Count
		}
	}
	require.Positive(t, asked)
	before, err := os.ReadFile(filepath.Join(out, result.RecordsFile))
	require.NoError(t, err)
	var first result.Record
	again := must(t, append(run, "--json")...)
	require.NoError(t, json.NewDecoder(strings.NewReader(again)).Decode(&first))
	require.Equal(t, "G1", first.Experiment)
	after, err := os.ReadFile(filepath.Join(out, result.RecordsFile))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// TestRebacTable prints a table of all settings.
func TestRebacTable(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	out := must(t, append(rebacRun, "--closures=on-the-fly")...)
	for _, want := range []string{"profile=tiny", "p99-ms", "check-view-hierarchy", "list-users-view"} {
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

const socialScript = `name: own
rate: 300
duration: 400ms
warmup: 0s
connections: 2
active: 50%
give-up: 20ms
steps:
  - {check: content, weight: 4}
  - {lookup: subjects, weight: 1}
  - {write: visibility, weight: 2}
`

// socialRun runs a script on one engine in a process of its own.
func socialRun(t *testing.T, args ...string) (out, errs string) {
	t.Helper()
	t.Setenv(clitest.AsCommand, "1")
	t.Setenv(bench.CacheEnv, t.TempDir())
	script := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(script, []byte(socialScript), 0o600))
	out, errs, code := varve(t, append([]string{"authz", "social", "--engines=sqlite", "--relationships=5000", "--script=" + script}, args...)...)
	require.Equal(t, cli.ExitOK, code, errs)
	return out, errs
}

// TestSocial measures twice into the same directory and prints both.
func TestSocial(t *testing.T) {
	dir := t.TempDir()
	socialRun(t, "--out="+dir)
	out, _ := socialRun(t, "--out="+dir, "--qps=100,200", "--duration=300ms")
	list := records(t, dir)
	require.Len(t, list[social.LoadName], 1)
	size, _ := list[social.LoadName][0].Metric("B/rel")
	require.Positive(t, size)
	require.Len(t, list[social.RunName], 3)
	require.Equal(t, "300", list[social.RunName][0].Config.Get("qps"))
	for _, kind := range []string{"check", "check-content", "lookup-subjects", "write", "write-visibility"} {
		require.NotNil(t, list[social.RunName][0].Latency(kind), kind)
	}
	require.Regexp(t, `check-p95-ms`, out)
	require.Regexp(t, `sqlite, 5000 relationships, 200/s: (met|check|write|success)`, out)
}

// TestSocialHopeless: a rate that no machine carries is recorded as missed, and
// higher ones are left out.
func TestSocialHopeless(t *testing.T) {
	out, errs := socialRun(t, "--qps=3000000,5000000", "--duration=100ms")
	require.Contains(t, errs, "3e+06 requests a second were too many")
	require.Regexp(t, `3e\+06/s: .*success`, out)
	require.NotContains(t, out, "5e+06")
}

func TestSocialUsage(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("name: x\nsteps: 1\n"), 0o600))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"unknown engine", []string{"--engines=mysql"}},
		{"from 5000 to", []string{"--relationships=10"}},
		{"--qps", []string{"--qps=0"}},
		{"--duration", []string{"--duration=-1s"}},
		{"unknown durability", []string{"--durability=never"}},
		{"scripts of the program are authzed, lookups, ramp", []string{"--script=nowhere.yaml"}},
		{"line 2: cannot unmarshal", []string{"--script=" + bad}},
		{"memory", []string{"--memory=lots"}},
	} {
		_, errs, code := varve(t, append([]string{"authz", "social"}, c.args...)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, c.want)
	}
}
