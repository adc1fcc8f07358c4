package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/experiment"
)

// tiny are options with which an experiment takes a moment.
func tiny(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(experiment.Options{
		Scale: 0.0005, Phase: 100 * time.Millisecond, Repeat: 1, Seed: 1, Durability: "durable", Memory: 64 << 20, Loaded: 0.6,
	})
	require.NoError(t, err)
	return string(text)
}

// TestLab runs an experiment of each kind on one engine in this process: each
// verifies its answers, and a wrong one would be the record's error.
func TestLab(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	for _, id := range []string{"A4", "A7", "A8", "C3", "D2", "D3", "D4", "E1", "E2", "E3", "G1", "G2"} {
		t.Run(id, func(t *testing.T) {
			out := t.TempDir()
			must(t, "lab", "--experiment="+id, "--engine=sqlite", "--out="+out, "--options="+tiny(t))
			results, err := result.Read(out)
			require.NoError(t, err)
			require.NotEmpty(t, results.Records)
			for _, r := range results.Records {
				require.Empty(t, r.Error, r.Key())
				require.NotEmpty(t, r.Metrics, r.Key())
				require.True(t, len(r.Latencies) > 0 || r.Name == social.LoadName, r.Key())
				require.Equal(t, "sqlite", r.Config.Get("engine"))
			}
		})
	}
}

// TestLabResumes: what a set has is not measured again, unless it failed.
func TestLabResumes(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	out := t.TempDir()
	lab := []string{"lab", "--experiment=A4", "--engine=sqlite", "--out=" + out, "--options=" + tiny(t)}
	must(t, lab...)
	before, err := os.ReadFile(filepath.Join(out, result.RecordsFile))
	require.NoError(t, err)
	must(t, lab...)
	after, err := os.ReadFile(filepath.Join(out, result.RecordsFile))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestRunUsage(t *testing.T) {
	out := must(t, "run", "--list", "D")
	require.Contains(t, out, "D2  Checkpoint stalls")
	require.NotContains(t, out, "A5")
	for _, args := range [][]string{
		{"run", "Z9"}, {"run", "A1", "--engines", "mysql"}, {"run", "A1", "--layouts", "none"}, {"run", "A1", "--scale", "0"},
	} {
		_, errs, code := varve(t, args...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, errs)
	}
}

// TestRunKeepsOptions: what records do not tell apart does not end up in one set.
func TestRunKeepsOptions(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(out, "options.json"), []byte(`{"phase":2}`), 0o644))
	_, errs, code := varve(t, "run", "A1", "--out", out)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "other options")
}

// TestExperimentsTables: the tables of EXPERIMENTS.md are what the committed
// results say.
func TestExperimentsTables(t *testing.T) {
	sets, err := filepath.Glob("../../docs/results/*/" + result.RecordsFile)
	require.NoError(t, err)
	require.NotEmpty(t, sets)
	newest := filepath.Dir(sets[len(sets)-1])
	must(t, "report", newest, "--experiments", "../../EXPERIMENTS.md", "--check")
}
