package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/cli"
)

// The test binary is the command where rebac starts it again for an engine.
func init() {
	if len(os.Args) > 2 && os.Args[1] == "authz" && os.Args[2] == "rebac-worker" {
		os.Exit(cli.Main())
	}
}

// rebacRun is a run that takes a moment.
var rebacRun = []string{"authz", "rebac", "--engines=sqlite", "--size=tiny", "--clients=1,2", "--duration=5ms"}

// TestRebac measures permissions on one engine in a process of its own, and keeps
// the measurements: eight scenarios, two closures, two numbers of clients.
func TestRebac(t *testing.T) {
	out := t.TempDir()
	printed := must(t, append(rebacRun, "--json", "--out="+out, "--dir="+t.TempDir())...)
	var outcomes []struct {
		Name   string       `json:"name"`
		Error  string       `json:"error"`
		Report rebac.Report `json:"report"`
	}
	require.NoError(t, json.Unmarshal([]byte(printed), &outcomes))
	require.Len(t, outcomes, 1)
	require.Empty(t, outcomes[0].Error)
	report := outcomes[0].Report
	require.Equal(t, rebac.Tiny, report.Size)
	require.Equal(t, rebac.Tiny.Objects(), report.Ingest.Objects)
	require.Positive(t, report.StorageBytes())
	require.Len(t, report.Measurements, 8*2*2)
	for _, m := range report.Measurements {
		require.Positive(t, m.Latency.Count, m.Scenario)
		require.Zero(t, m.Errors, m.Scenario)
		if m.Scenario == rebac.ListHeavy {
			require.InDelta(t, rebac.Tiny.HeavyDirect+rebac.Tiny.HeavyOrg, m.IDs, 1e-9)
		}
	}
	results, err := result.Read(out)
	require.NoError(t, err)
	require.Len(t, results.Records, 1+8*2*2)
	require.Len(t, results.Manifests, 1)
}

// TestRebacTable prints a table for each closure and number of clients.
func TestRebacTable(t *testing.T) {
	out := must(t, append(rebacRun, "--closures=on-the-fly")...)
	for _, want := range []string{"size tiny: 4 organizations", "2 clients, closure on-the-fly", rebac.CheckHierarchy, rebac.ListViewers} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "closure materialised\n")
}

func TestRebacUsage(t *testing.T) {
	for _, args := range [][]string{{"--size=huge"}, {"--engines=oracle"}, {"--clients=0"}, {"--duration=0s"}, {"--durability=none"}, {"--memory=lots"}, {"--closures=none"}} {
		_, errs, code := varve(t, append([]string{"authz", "rebac"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, errs)
	}
}
