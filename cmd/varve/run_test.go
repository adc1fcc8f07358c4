package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/internal/experiment"
)

// tiny are options with which an experiment takes a moment.
func tiny(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(experiment.Options{
		Scale: 0.0005, Phase: 100 * time.Millisecond, Seed: 1, Durability: "durable", Memory: 128 << 20, Loaded: 0.6,
		Permissions: &experiment.PermissionOptions{Clients: []int{4}},
	})
	require.NoError(t, err)
	return string(text)
}

// TestLab runs an experiment of each kind on one engine in this process: each
// verifies its answers, and a wrong one would be the record's error.
func TestLab(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	for _, id := range []string{"A4", "A7", "A8", "C3", "D2", "D3", "D4", "E1", "E2", "E3", "F3", "F6", "G1", "G2", "H1", "H3"} {
		t.Run(id, func(t *testing.T) {
			out, options := t.TempDir(), tiny(t)
			if id == "H3" { // over each protocol
				options = strings.Replace(options, `"layouts":null`, `"layouts":["compact"]`, 1)
			}
			must(t, "lab", "--experiment="+id, "--engine=sqlite", "--out="+out, "--options="+options)
			results, err := result.Read(out)
			require.NoError(t, err)
			require.NotEmpty(t, results.Records)
			for _, r := range results.Records {
				require.Empty(t, r.Error, r.Key())
				require.NotEmpty(t, r.Metrics, r.Key())
				require.True(t, len(r.Latencies) > 0 || r.Name == social.LoadName, r.Key())
				require.Equal(t, "sqlite", r.Config.Get("engine"))
				var m bench.Manifest
				require.NoError(t, results.Manifest(&r, &m))
				require.NotEmpty(t, m.Settings, "%s: as read back", r.Key())
				if us, has := r.Metric("fsync-us"); has {
					require.InDelta(t, m.Host.Fsync.Median.Seconds(), us/1e6, 1e-12, "%s: the disk is probed once", r.Key())
				}
			}
		})
	}
}

// TestLabInPlace: readers give a data set back, so that one of each layout serves them all; what
// writes uses it up, and nothing of it is left.
func TestLabInPlace(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(bench.CacheEnv, cache)
	options := strings.Replace(tiny(t), "{", `{"in_place":true,`, 1)
	for id, left := range map[string]int{"E1": 2, "E2": 0} {
		out := t.TempDir()
		must(t, "lab", "--experiment="+id, "--engine=sqlite", "--out="+out, "--options="+options)
		results, err := result.Read(out)
		require.NoError(t, err)
		require.Greater(t, len(results.Records), 1)
		for _, r := range results.Records {
			require.Empty(t, r.Error, r.Key())
			require.Contains(t, string(results.Manifests[r.Manifest]), `"in_place":true`)
		}
		whole, err := filepath.Glob(filepath.Join(cache, "*", "ready.json"))
		require.NoError(t, err)
		require.Len(t, whole, left, id)
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

// TestLabMeasuresOver: what a busy machine has spoilt is measured again, and the later
// record counts, which is no reason for a warning.
func TestLabMeasuresOver(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	out := t.TempDir()
	lab := []string{"lab", "--experiment=A4", "--engine=sqlite", "--out=" + out}
	must(t, append(lab, "--options="+strings.Replace(tiny(t), "{", `{"off":"slow",`, 1))...)
	before, err := result.Read(out)
	require.NoError(t, err)
	must(t, append(lab, "--options="+strings.Replace(tiny(t), "{", `{"over":true,`, 1))...)
	after, err := result.Read(out)
	require.NoError(t, err)
	require.Empty(t, after.Warnings)
	require.Len(t, after.Records, len(before.Records))
	for i, r := range after.Records {
		require.Contains(t, before.Records[i].Notes, "probe=off: slow")
		require.NotContains(t, r.Notes, "probe=off: slow")
		require.True(t, r.Started.After(before.Records[i].Started))
	}
}

// TestRunLooksAtTheMachine: a run keeps what it saw, whatever that was, and goes on with
// phases of another length for other experiments only.
func TestRunLooksAtTheMachine(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	args := []string{"run", "A4", "--engines=sqlite", "--scale=0.0005", "--no-aa", "--out=" + out}
	p := newGroupIn(t, t.TempDir(), os.Getenv(bench.CacheEnv), append(args, "--phase=50ms")...)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(out, result.RecordsFile))
		return bytes.Contains(text, []byte(`"experiment":"M1"`))
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL))
	p.wait()
	results, err := result.Read(out)
	require.NoError(t, err)
	look := results.Records[0]
	require.Equal(t, experiment.Machine.ID, look.Experiment)
	for _, unit := range []string{"fsync-p50-ms", "fsync-p99-ms", "copy-MB/s", "work-ms", "work-all-ms"} {
		v, _ := look.Metric(unit)
		require.Positive(t, v, unit)
	}

	args = append(args, "--no-probe")
	must(t, append(args, "--phase=50ms")...)
	_, errs, code := varve(t, append(args, "--phase=60ms")...)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "A4 with --phase 50ms")
	args[1] = "A2"
	must(t, append(args, "--phase=60ms")...)
}

// TestRunPlan: a plan is gone through in order, ends before what would take too long, goes
// on where it was, and says how much of it is left.
func TestRunPlan(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1")
	out, plan := t.TempDir(), filepath.Join(t.TempDir(), "plan.md")
	common := " --engines=sqlite --scale=0.0005 --phase=50ms --no-aa --no-probe --out=" + out
	text := "```sh\nvarve run A4" + common + " # 2s: short\nvarve run A2" + common + " --blocks=2 # 100h\n```\n"
	require.NoError(t, os.WriteFile(plan, []byte(text), 0o600))
	experiments := func() (ids []string) {
		results, err := result.Read(out)
		require.NoError(t, err)
		require.Empty(t, results.Warnings)
		for _, r := range results.Records {
			ids = append(ids, r.Experiment)
		}
		return ids
	}
	_, errs, code := varve(t, "run", "--plan", plan, "--until=1h")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "run: 100h0m2s of the plan's 100h0m2s are left\n")
	require.Contains(t, errs, "run: 2 of 2, about 100h0m0s left of the plan: varve run A2")
	require.Contains(t, errs, "the time is up")
	first := experiments()
	require.NotContains(t, first, "A2")

	_, errs, code = varve(t, "run", "--plan", plan)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "run: 100h0m0s of the plan's 100h0m2s are left\n")
	require.NotContains(t, errs, "run: 1 of 2,")
	require.Greater(t, len(experiments()), len(first))

	_, errs, _ = varve(t, "run", "--plan", plan)
	require.Contains(t, errs, "run: 0s of the plan's 100h0m2s are left\n")
	require.NotContains(t, errs, "block 1")
}

// blockRun is a run of two experiments on two engines in three blocks.
var blockRun = []string{"run", "A3", "A4", "--engines=sqlite,duckdb", "--blocks=3", "--scale=0.0005", "--phase=50ms", "--no-probe"}

// TestRunBlocks kills a run several times, and goes on with it: nothing is missing,
// nothing is measured twice, orders differ from block to block, and of each
// experiment one configuration of each block is measured again.
func TestRunBlocks(t *testing.T) {
	out, cache := t.TempDir(), t.TempDir()
	args := append(slices.Clone(blockRun), "--out="+out)
	for _, when := range []string{"(1 of 18", "(3 of", "(4 of"} {
		p := newGroupIn(t, t.TempDir(), cache, args...)
		require.Eventually(t, func() bool { return strings.Contains(p.errs.String(), when) }, time.Minute, time.Millisecond, &p.errs)
		time.Sleep(700 * time.Millisecond)
		require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL))
		require.Equal(t, -1, p.wait(), "it ended before it was killed")
		p.lastChild(t)
	}
	t.Setenv(bench.CacheEnv, cache)
	t.Setenv(clitest.AsCommand, "1") // for the processes that it starts
	must(t, args...)

	results, err := result.Read(out)
	require.NoError(t, err)
	require.Empty(t, results.Warnings)
	text, err := os.ReadFile(filepath.Join(out, result.RecordsFile))
	require.NoError(t, err)
	require.Equal(t, len(results.Records), bytes.Count(text, []byte("\n")), "a record is there twice")
	orders, again := map[string][]string{}, map[string]int{}
	for _, r := range results.Records {
		require.Empty(t, r.Error, r.Key())
		require.Contains(t, results.Manifests, r.Manifest)
		if r.Again() {
			again[fmt.Sprint(r.Experiment, " in block ", r.Repeat+1)]++
			continue
		}
		of := fmt.Sprint(r.Experiment, " ", r.Repeat+1)
		orders[of] = append(orders[of], r.Config.String())
	}
	require.Len(t, again, 6)
	for where, n := range again {
		require.Equal(t, 1, n, where)
	}
	require.Len(t, orders, 6)
	for _, id := range []string{"A3 ", "A4 "} {
		first := orders[id+"1"]
		for _, block := range []string{"2", "3"} {
			require.ElementsMatch(t, first, orders[id+block])
			require.NotEqual(t, first, orders[id+block])
		}
	}

	before := string(text)
	must(t, args...)
	text, err = os.ReadFile(filepath.Join(out, result.RecordsFile))
	require.NoError(t, err)
	require.Equal(t, before, string(text), "a complete run was measured again")
}

// TestRunGoesOn: a run says how much of it is done already, once, and starts no process
// for that; how long the rest takes follows from what it has measured itself. What was
// taken out of the records, and with --retry what failed, is measured again.
func TestRunGoesOn(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	args := []string{"run", "A4", "--engines=sqlite", "--scale=0.0005", "--phase=50ms", "--no-probe", "--blocks=2", "--out=" + out}
	again := func(more ...string) (tasks []string, errs string) {
		_, errs, _ = varve(t, append(args, more...)...)
		return regexp.MustCompile(`run: block .*`).FindAllString(errs, -1), errs
	}
	tasks, errs := again()
	require.Len(t, tasks, 4)
	require.NotContains(t, errs, "done already")
	require.Contains(t, tasks[0], "(1 of 4, 0s so far)")
	require.Contains(t, tasks[1], " left)")

	tasks, errs = again()
	require.Empty(t, tasks)
	require.Equal(t, 1, strings.Count(errs, "run: 4 of 4 are done already\n"))

	path := filepath.Join(out, result.RecordsFile)
	before := replaceIn(t, path, func(text string) string { return strings.Join(strings.SplitAfter(text, "\n")[1:], "") })
	tasks, errs = again()
	require.Contains(t, errs, "run: 3 of 4 are done already\n")
	require.Len(t, tasks, 1)
	require.Contains(t, tasks[0], "(4 of 4, 0s so far)", "nothing was measured yet that would tell how long it takes")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Count(before, "\n")+1, bytes.Count(after, []byte("\n")))

	replaceIn(t, path, func(text string) string { return strings.Replace(text, "}\n", `,"error":"killed"}`+"\n", 1) })
	tasks, _ = again()
	require.Empty(t, tasks)
	tasks, errs = again("--retry")
	require.Len(t, tasks, 1)
	require.NotContains(t, errs, "killed")
	tasks, _ = again("--blocks=3", "--retry")
	require.Len(t, tasks, 2, "of the new block")
}

// TestRunElsewhere: a run goes on on another machine, which leaves the blocks of an
// experiment that are there as they are and adds to none of them, and with another source
// it does not.
func TestRunElsewhere(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1")
	out := t.TempDir()
	args := []string{"run", "A4", "--engines=sqlite", "--scale=0.0005", "--phase=50ms", "--no-probe", "--out=" + out}
	must(t, append(args, "--blocks=2")...)
	records := replaceIn(t, filepath.Join(out, result.RecordsFile), func(text string) string {
		lines := strings.SplitAfter(text, "\n")
		return strings.Join(lines[:len(lines)-2], "") // of the second block one record is missing
	})
	replaceIn(t, filepath.Join(out, result.ManifestsFile), func(text string) string {
		return regexp.MustCompile(`"machine":"[0-9a-f]+"`).ReplaceAllString(text, `"machine":"another"`)
	})

	_, errs, code := varve(t, append(args, "--blocks=3")...)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "run: block 2 of A4: of another machine, and stays as it is; --blocks 4 measures one more here")
	must(t, append([]string{"run", "A1"}, args[2:]...)...)
	results, err := result.Read(out)
	require.NoError(t, err)
	require.Empty(t, results.Warnings)
	found := map[int]int{}
	first := 0 // of another experiment, in the first block too
	for _, r := range results.Records {
		if r.Experiment == "A1" {
			first++
		} else {
			found[r.Repeat]++
		}
	}
	require.NotZero(t, first)
	require.Len(t, found, 3)
	require.Equal(t, strings.Count(records, "\n"), found[0]+found[1])
	require.Equal(t, found[0], found[2])

	replaceIn(t, filepath.Join(out, "options.json"), func(text string) string {
		return regexp.MustCompile(`"revision":"[^"]*"`).ReplaceAllString(text, `"revision":"another"`)
	})
	_, errs, code = varve(t, append(args, "--blocks=4")...)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "results of another source or of other options")
}

// replaceIn changes the text of a file, and returns what it is now.
func replaceIn(t *testing.T, path string, change func(string) string) string {
	t.Helper()
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	text := change(string(old))
	require.NotEqual(t, string(old), text)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return text
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
