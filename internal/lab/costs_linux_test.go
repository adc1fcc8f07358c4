package lab

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/driver"
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
// Checkpoints are made by the commits, because how many the engine makes in the
// background depends on when it gets a core: up to 3 % of the bytes here.
func TestCostsWhileBusy(t *testing.T) {
	const commits = 800 // in which a merge more or less at the end does not count
	gen := bench.GenOptions{Entities: 2000, PerBlock: ProductionBlock, Seed: 1}
	d := bench.Dataset{Profile: bench.Typical, Gen: gen}
	costs := func() *Record {
		r := testLab(t).trial(new(Record))
		r.Store.Checkpoint = driver.Inline
		require.NoError(t, r.WithNew(t.Context(), "", "compact", func() error {
			if _, err := d.Fill(t.Context(), r.Entities); err != nil {
				return err
			}
			if err := r.flush(t.Context()); err != nil {
				return err
			}
			return r.metered(t.Context(), "commit-", func() error {
				res, err := bench.Commit(t.Context(), r.Entities, bench.CommitConfig{
					Blocks: bench.Blocks(d.Profile, gen.Next(commits*ProductionBlock)),
					Config: pace.Config{N: commits},
				})
				r.operations += res.Total
				return err
			})
		}))
		return r.Record
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

// TestCostsOfCheckpoint: commits cost what they put off, too. They write to the
// log alone here, and the rest is copied into the database at the end.
func TestCostsOfCheckpoint(t *testing.T) {
	const commits = 20
	r := testLab(t).trial(new(Record))
	r.Store.Checkpoint = driver.Manual
	var logged float64
	require.NoError(t, r.WithNew(t.Context(), "", "arkiv", func() error {
		size := func() float64 {
			stats, err := r.DB.Engine().Stats(t.Context())
			require.NoError(t, err)
			return float64(*stats.WALBytes)
		}
		err := r.metered(t.Context(), "commit-", func() error {
			res, err := bench.Commit(t.Context(), r.Entities, bench.CommitConfig{
				Blocks: bench.Blocks(bench.Typical, bench.GenOptions{Entities: 200, PerBlock: 10, Seed: 1}),
				Config: pace.Config{N: commits},
			})
			r.operations += res.Total
			logged = size()
			return err
		})
		require.NoError(t, err)
		return r.metered(t.Context(), "read-", func() error {
			r.operations++
			return nil
		})
	}))
	written, _ := r.Metric("commit-write-B/op")
	require.Greater(t, commits*written, 1.05*logged)
	nothing, known := r.Metric("read-write-B/op")
	require.True(t, known)
	require.Less(t, nothing, written/100, "later operations find no work that was put off")
}

// TestFirstLookCosts: a first look has what its tables of costs ask for, of
// commits that write and of reads that do not.
func TestFirstLookCosts(t *testing.T) {
	l, e := testLab(t), find(t, "Q1")
	l.First, l.Layouts = &FirstOptions{Entities: 200, Commits: 20}, []string{"compact"}
	list, err := l.Plan(e)
	require.NoError(t, err)
	r := l.Measure(t.Context(), &list[0])
	require.NoError(t, r.Err)
	asked := 0
	for _, view := range e.Views {
		for _, c := range view.Columns {
			if !strings.HasSuffix(c.Unit, "/op") || strings.HasSuffix(c.Unit, "syncs/op") { // which take root
				continue
			}
			_, known := r.Metric(c.Unit)
			require.True(t, known, c.Unit)
			asked++
		}
	}
	require.Equal(t, 6, asked)
	commit, _ := r.Metric("commit-write-B/op")
	read, _ := r.Metric("read-write-B/op")
	require.Greater(t, commit, 100*read)
}
