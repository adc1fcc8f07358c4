package lab

import (
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
)

// busy keeps all cores busy until it is stopped.
func busy(t *testing.T) (stop func()) {
	t.Helper()
	var list []*exec.Cmd
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		require.NoError(t, cmd.Start())
		list = append(list, cmd)
	}
	return func() {
		for _, cmd := range list {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // which says that it was killed
		}
	}
}

// TestCostsWhileBusy: the same commits write and sync as much while other
// programs keep all cores busy, with the merges and checkpoints that they cause.
func TestCostsWhileBusy(t *testing.T) {
	const commits = 800 // in which a merge more or less at the end does not count
	d := bench.Dataset{Profile: bench.Typical, Gen: bench.GenOptions{Entities: 2000, PerBlock: ProductionBlock, Seed: 1}}
	costs := func() *Record {
		l, r := testLab(t), new(Record)
		require.NoError(t, l.WithNew(t.Context(), "", "compact", l.StoreOptions(), r, func(cp *bench.Copy) error {
			if _, err := d.Fill(t.Context(), cp.Entities); err != nil {
				return err
			}
			return l.metered(t.Context(), cp, r, "commit-", func() error {
				res, err := bench.Commit(t.Context(), cp.Entities, bench.CommitConfig{
					Blocks: bench.Blocks(d.Profile, d.Gen.Next(commits*ProductionBlock)), Config: pace.Config{N: commits},
				})
				r.operations += res.Total
				return err
			})
		}))
		return r
	}
	quiet := costs()
	stop := busy(t)
	defer stop()
	loud := costs()
	for _, m := range quiet.Metrics {
		other, known := loud.Metric(m.Unit)
		require.True(t, known, m.Unit)
		t.Logf("%s: %.6g quiet, %.6g busy", m.Unit, m.Value, other)
		if m.Unit == "commit-write-B/op" || m.Unit == "commit-syncs/op" {
			require.Positive(t, m.Value)
			require.InEpsilon(t, m.Value, other, 0.03, m.Unit)
		}
	}
	require.GreaterOrEqual(t, len(quiet.Metrics), 3)
}
