package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/memlimit"
)

// TestInterruptLeavesNothing sends a terminal's signals to commands that measure in processes of
// their own: the command says that it was interrupted, and neither files nor processes stay.
func TestInterruptLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name, when string // a message after which the signals are sent
		later      time.Duration
		args       []string
		signals    []syscall.Signal
	}{
		{"run", "(A1) on sqlite", 500 * time.Millisecond, []string{"run", "A1", "--scale=1", "--engines=sqlite"}, []syscall.Signal{syscall.SIGINT}},
		{"ended at its start", "FirstLook/engine=postgres", 50 * time.Millisecond, []string{"compare", "-v", "--entities=200000", "postgres"}, []syscall.Signal{syscall.SIGTERM}},
		{"impatient", "FirstLook/engine=postgres", 2 * time.Second, []string{"compare", "-v", "--entities=200000", "postgres"}, []syscall.Signal{syscall.SIGINT, syscall.SIGINT}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newGroup(t, c.args...)
			require.Eventually(t, func() bool { return strings.Contains(p.errs.String(), c.when) }, time.Minute, time.Millisecond, &p.errs)
			time.Sleep(c.later)
			for _, s := range c.signals {
				p.signal(t, s)
			}
			want := []int{cli.ExitInterrupted}
			if len(c.signals) > 1 {
				want = append(want, -1) // the second one may meet a parent that has cleaned up and is about to end
			}
			require.Contains(t, want, p.wait(), &p.errs)
			if errs := p.errs.String(); len(c.signals) == 1 {
				require.Equal(t, 1, strings.Count(errs, "interrupted"), errs)
				require.NotContains(t, errs, "context canceled")
				require.Equal(t, c.args[0] == "run", strings.Contains(errs, "the same command again"), errs) // where something is kept
			}
			p.leavesNothing(t)
		})
	}
}

// TestKilledLeavesToTheNext: the next command removes the files of a killed
// one, and not the files of a running one.
func TestKilledLeavesToTheNext(t *testing.T) {
	p := newGroup(t, "compare", "-v", "--entities=200000", "sqlite")
	require.Eventually(t, func() bool { return strings.Contains(p.errs.String(), "FirstLook/engine=sqlite") }, time.Minute, time.Millisecond, &p.errs)
	again := func() {
		next := newGroupIn(t, p.temp, p.cache, "compare", "--entities=100", "--commits=5", "--repeats=1", "--layouts=compact", "sqlite")
		require.Equal(t, cli.ExitOK, next.wait(), &next.errs)
	}
	before, err := os.ReadDir(p.temp)
	require.NoError(t, err)
	again()
	for _, made := range before {
		require.DirExists(t, filepath.Join(p.temp, made.Name()), "its command runs")
	}
	require.NoError(t, p.cmd.Process.Kill())
	p.wait()
	p.lastChild(t)
	for _, made := range before { // the kernel closes a process's files after its memory
		require.Eventually(t, func() bool {
			dir, err := os.Open(filepath.Join(p.temp, made.Name()))
			require.NoError(t, err)
			defer dir.Close()
			return filelease.Lock(dir) == nil
		}, time.Minute, 5*time.Millisecond, made.Name())
	}
	again()
	p.others = controlGroups(t)
	p.leavesNothing(t)
}

// TestMemoryBudget: what takes more memory than its budget is killed, which is said.
func TestMemoryBudget(t *testing.T) {
	probe, err := memlimit.New(1 << 30)
	if err != nil {
		t.Skip("no limit can be set here: ", err)
	}
	require.NoError(t, probe.Close())
	p := newGroup(t, "compare", "sqlite", "--repeats=1", "--memory=12MiB")
	require.Equal(t, cli.ExitError, p.wait())
	require.Contains(t, p.errs.String(), "killed, because it needed more memory than --memory gives, 12.0 MiB")
	p.leavesNothing(t)
}

// group is a command in a separate process group, as a shell starts it, with
// private temporary files and data sets.
type group struct {
	cmd         *exec.Cmd
	errs        clitest.Output
	temp, cache string
	others      []string // control groups that were there before
}

func newGroup(t *testing.T, args ...string) *group {
	t.Helper()
	return newGroupIn(t, t.TempDir(), t.TempDir(), args...)
}

func newGroupIn(t *testing.T, temp, cache string, args ...string) *group {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &group{temp: temp, cache: cache, others: controlGroups(t)}
	p.cmd = exec.Command(self, args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append(os.Environ(), clitest.AsCommand+"=1", "TMPDIR="+p.temp, bench.CacheEnv+"="+p.cache)
	p.cmd.Stderr = &p.errs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }) // where the test failed
	return p
}

// signal sends a signal to the whole group, as a terminal does, and lets it
// arrive: two signals at once are one.
func (p *group) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, s))
	time.Sleep(20 * time.Millisecond)
}

func (p *group) wait() int {
	_ = p.cmd.Wait() // the exit code is asserted
	return p.cmd.ProcessState.ExitCode()
}

// lastChild waits for the end of the process that a killed command had started, which
// the kernel tells to end.
func (p *group) lastChild(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		processes, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is good
		return !slices.ContainsFunc(processes, func(path string) bool {
			env, _ := os.ReadFile(path) // it may have ended
			return bytes.Contains(env, []byte(p.temp))
		})
	}, time.Minute, 5*time.Millisecond)
}

// leavesNothing looks for files, for processes that work there, have a path
// there among their arguments or were started with their files there, and for
// unusable data sets and runs.
func (p *group) leavesNothing(t *testing.T) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, process := range processes {
		cwd, _ := os.Readlink(process + "/cwd") // it may have ended
		args, _ := os.ReadFile(process + "/cmdline")
		env, _ := os.ReadFile(process + "/environ")
		for _, dir := range []string{p.temp, p.cache} {
			found := strings.HasPrefix(cwd, dir) || bytes.Contains(args, []byte(dir)) || bytes.Contains(env, []byte(dir))
			require.False(t, found, "%s is left: %s", process, args)
		}
	}
	for _, dir := range controlGroups(t) {
		made := strings.Contains(dir, fmt.Sprintf("varve-%d-", p.cmd.Process.Pid)) && !slices.Contains(p.others, dir)
		require.False(t, made, "a control group is left: %s", dir)
	}
	for dir, keep := range map[string]string{p.temp: "", p.cache: ".lock"} {
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			if f.Name() == "runs" {
				left, err := os.ReadDir(filepath.Join(dir, f.Name()))
				require.NoError(t, err)
				require.Empty(t, left)
				continue
			}
			require.True(t, keep != "" && strings.HasSuffix(f.Name(), keep), "%s is left in %s", f.Name(), dir)
		}
	}
}

// controlGroups returns the directories of all control groups.
func controlGroups(t *testing.T) (dirs []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // of others
			return nil
		}
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	}))
	return dirs
}
