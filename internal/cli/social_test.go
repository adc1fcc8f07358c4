package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/social"
	_ "github.com/varvedb/varve/store/sqlite"
)

const socialScript = `name: own
rate: 300
duration: 400ms
warmup: 0s
connections: 2
active: 50%
steps:
  - {check: content, weight: 4}
  - {lookup: subjects, weight: 1}
  - {write: visibility, weight: 2}
`

// TestSocialWorker measures one engine in this process, twice into the same
// directory, and prints what was measured last.
func TestSocialWorker(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	out, script := t.TempDir(), filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(script, []byte(socialScript), 0o600))
	run := func(args ...string) (report socialReport) {
		var stdout, stderr bytes.Buffer
		args = append([]string{"authz", "social", "--worker=sqlite", "--relationships=5000", "--script=" + script, "--out=" + out}, args...)
		require.Equal(t, ExitOK, Run(t.Context(), args, &stdout, &stderr), stderr.String())
		require.Contains(t, stderr.String(), "sqlite: load 5000 relationships of 26 users")
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))
		return report
	}
	run()
	report := run("--qps=100,200", "--duration=300ms")

	results, err := result.Read(out)
	require.NoError(t, err)
	var own *result.Record
	for i := range results.Records {
		r := &results.Records[i]
		require.Empty(t, r.Error)
		require.Equal(t, social.Experiment, r.Experiment)
		require.NotEmpty(t, r.Manifest)
		if r.Config.Get("qps") == "300" {
			own = r
		}
	}
	require.NotNil(t, own)
	for _, kind := range []string{"check", "check-content", "lookup-subjects", "write", "write-visibility"} {
		require.NotNil(t, own.Latency(kind), kind)
	}

	require.Len(t, report.Verdicts, 2)
	require.Equal(t, []float64{100, 200}, []float64{report.Verdicts[0].Target, report.Verdicts[1].Target})
	require.Len(t, report.Loads, 1)
	require.Positive(t, report.Loads[0].Bytes)
	var text bytes.Buffer
	require.NoError(t, report.print(&text))
	require.Regexp(t, `sqlite +5000 +100 +\d+`, text.String())
	require.FileExists(t, filepath.Join(out, result.BenchFile))
}

// TestSocialHopeless: a rate that no machine carries is recorded as missed, and
// higher ones are left out.
func TestSocialHopeless(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	script := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(script, []byte(socialScript+"give-up: 20ms\n"), 0o600))
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), []string{"authz", "social", "--worker=sqlite", "--relationships=5000", "--script=" + script,
		"--out=" + t.TempDir(), "--qps=3000000,5000000", "--duration=100ms"}, &stdout, &stderr)
	require.Equal(t, ExitOK, code, stderr.String())
	require.Contains(t, stderr.String(), "are left out")
	var report socialReport
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))
	require.Len(t, report.Verdicts, 1)
	require.False(t, report.Verdicts[0].Met)
	require.Less(t, report.Verdicts[0].Success, social.Hopeless)
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
		{"bad.yaml: load script: line 2: steps", []string{"--script=" + bad}},
		{"memory", []string{"--memory=lots"}},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, ExitUsage, Run(t.Context(), append([]string{"authz", "social"}, c.args...), &stdout, &stderr))
		require.Contains(t, stderr.String(), c.want)
	}
}

// TestSocialReport: a level that was missed is named, and so is an error.
func TestSocialReport(t *testing.T) {
	r := socialReport{Verdicts: []socialVerdict{
		{Verdict: social.Verdict{Engine: "a", Missed: []string{"check p95 30ms"}}},
		{Verdict: social.Verdict{Engine: "b", Error: "disk full"}},
		{Verdict: social.Verdict{Engine: "c"}, Met: true},
	}}
	var text bytes.Buffer
	require.NoError(t, r.print(&text))
	require.Regexp(t, `(?s)a .* missed: check p95 30ms.*b .* error: disk full.*c .* met`, text.String())
}
