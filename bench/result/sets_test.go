package result_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
)

// writeSet writes a set of configurations, each with so many repetitions.
func writeSet(t *testing.T, dir string, repeats map[string]int, value float64) {
	t.Helper()
	w, err := result.Open(dir)
	require.NoError(t, err)
	key, err := w.Manifest(map[string]string{"of": filepath.Base(dir)})
	require.NoError(t, err)
	for _, layout := range []string{"arkiv", "compact", "simple"} {
		for repeat := range repeats[layout] {
			config := result.Config{{Key: "engine", Value: "sqlite"}, {Key: "layout", Value: layout}}
			for _, c := range []result.Config{config, config.With(result.AAKey, "2")} {
				require.NoError(t, w.Append(&result.Record{
					Experiment: "C1", Name: "ReadMix", Config: c, Repeat: repeat, Manifest: key, Metrics: []result.Metric{{Value: value, Unit: "qps"}},
				}))
			}
		}
	}
	require.NoError(t, w.Close())
}

// Of a configuration that two sets have the one counts that has more of it, with its
// pairs.
func TestReadAll(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, filepath.Join(dir, "a"), map[string]int{"arkiv": 3, "compact": 1}, 1)
	writeSet(t, filepath.Join(dir, "b"), map[string]int{"arkiv": 2, "compact": 1, "simple": 2}, 2)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b", result.PeersFile), []byte(peers), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "PLAN.md"), nil, 0o600))

	all, err := result.ReadAll(dir)
	require.NoError(t, err)
	sums := map[string]float64{}
	for _, r := range all.Records {
		v, _ := r.Metric("qps")
		sums[r.Config.Get("layout")+r.Config.Get(result.AAKey)] += v
	}
	require.Equal(t, map[string]float64{"arkiv": 3, "arkiv2": 3, "compact": 2, "compact2": 2, "simple": 4, "simple2": 4}, sums)
	require.Len(t, all.Manifests, 2)
	require.Len(t, all.Peers, 3)
	require.Equal(t, []string{"6 records are left out: b and sets before it have the same configurations"}, all.Warnings)

	one, err := result.ReadAll(filepath.Join(dir, "b"))
	require.NoError(t, err)
	require.Len(t, one.Records, 10)
	require.Len(t, one.Peers, 3)
	_, err = result.ReadAll(t.TempDir())
	require.ErrorContains(t, err, "is no result set and has none in it")
}

const peers = `experiment: F2
peer: UmaDB from PyPI, defaults
version: 0.7.8
server: gRPC over loopback
date: 2026-11-23
BenchmarkPeer/peer=umadb/profile=small/clients=20 1000 3201 op/s
BenchmarkPeer/peer=umadb/profile=small/clients=20 1000 3300 op/s
peer: go-crablet (published)
version:
server:
note: empties the table first
BenchmarkPeer/peer=go-crablet/clients=20 2000 16606 op/s
`

func TestReadPeers(t *testing.T) {
	list, err := result.ReadPeers(strings.NewReader(peers), "peers.txt")
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, 1, list[1].Repeat)
	require.Equal(t, []string{"peer: UmaDB from PyPI, defaults", "version: 0.7.8", "server: gRPC over loopback", "date: 2026-11-23"}, list[0].Notes)
	require.Equal(t, []string{"peer: go-crablet (published)", "date: 2026-11-23", "note: empties the table first"}, list[2].Notes)
	require.Zero(t, list[2].Repeat)

	small := result.Config{{Key: "engine", Value: "sqlite"}, {Key: "profile", Value: "small"}, {Key: "clients", Value: "20"}}
	require.True(t, list[0].Beside(small))
	require.False(t, list[0].Beside(small.With("profile", "tiny")))
	require.True(t, list[2].Beside(small.With("profile", "tiny")), "it says nothing of the profile")

	for text, want := range map[string]string{
		"experiment: F2\npeer: x\nBenchmarkPeer/clients=20 1 2 op/s\n": "has no peer=…",
		"peer: x\nBenchmarkPeer/peer=x 1 2 op/s\n":                     `no line "experiment: …" before it`,
		"experiment: F2\nBenchmarkPeer/peer=x 1 2 op/s\n":              `no line "peer: …" before it`,
		"Benchmark 1\n": "peers.txt:1",
	} {
		_, err := result.ReadPeers(strings.NewReader(text), "peers.txt")
		require.ErrorContains(t, err, want)
	}
}
