package main

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/store"
)

// asIs takes from an output what two stores of the same content do not share: the
// engine with its settings, sizes and times.
func asIs(text, url string) string {
	text = strings.ReplaceAll(text, url, "URL")
	var inspected struct {
		Store struct{ Layout, Digest string }
	}
	if json.Unmarshal([]byte(text), &inspected) == nil && inspected.Store.Digest != "" {
		return inspected.Store.Layout + inspected.Store.Digest
	}
	return text
}

// TestOtherProgram: what this program does not link it hands to the one that does, with
// the same output and exit code as here.
func TestOtherProgram(t *testing.T) {
	dir := t.TempDir()
	there, here := "libsql:"+filepath.Join(dir, "there.db"), "sqlite:"+filepath.Join(dir, "here.db")
	events := filepath.Join(dir, "events.jsonl")
	require.NoError(t, os.WriteFile(events, []byte(`{"type":"a","tags":[["k","v"]],"data":1}`+"\n"), 0o644))
	bad := filepath.Join(dir, "bad.jsonl")
	require.NoError(t, os.WriteFile(bad, []byte("{\n"), 0o644))
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"query", "URL", "*"}, cli.ExitError}, // there is none yet
		{[]string{"import", arkiv + "blocks.tar", "URL"}, cli.ExitOK},
		{[]string{"import", arkiv + "sqlite-store.db", "URL"}, cli.ExitOK},
		{[]string{"query", "URL", `type = "node"`, "--keys"}, cli.ExitOK},
		{[]string{"query", "URL", "*", "--count", "--at=1000"}, cli.ExitOK},
		{[]string{"query", "URL", `type = "node`}, cli.ExitUsage},
		{[]string{"query", "URL", "*", "--at=2000"}, cli.ExitError},
		{[]string{"inspect", "URL", "--json"}, cli.ExitOK},
		{[]string{"verify", "URL", "--against", arkiv + "blocks.tar"}, cli.ExitOK},
		{[]string{"check", "URL"}, cli.ExitOK},
		{[]string{"events", "append", "URL", events}, cli.ExitOK},
		{[]string{"events", "append", "URL", bad}, cli.ExitError},
		{[]string{"events", "read", "URL", "--tag=k:v"}, cli.ExitOK},
		{[]string{"scale", "URL", filepath.Join(dir, "scaled.tar"), "--factor=2"}, cli.ExitOK},
		{[]string{"backup", "URL", filepath.Join(dir, "backup-URL")}, cli.ExitOK},
	} {
		run := func(url, name string) (string, int) {
			args := strings.Split(strings.ReplaceAll(strings.ReplaceAll(strings.Join(c.args, "\x00"), "backup-URL", "backup-"+name), "URL", url), "\x00")
			out, errs, code := varve(t, args...)
			require.Equal(t, c.code, code, "%s\n%s%s", args, out, errs)
			return asIs(out, url), code
		}
		want, _ := run(here, "here")
		got, _ := run(there, "there")
		switch c.args[0] {
		case "query", "inspect":
			require.Equal(t, want, got, "%v", c.args)
		}
		require.Equal(t, want == "", got == "", "%v\n%s", c.args, got)
	}
	restored := "sqlite:" + filepath.Join(dir, "restored.db")
	must(t, "restore", filepath.Join(dir, "backup-there"), restored)
	require.Equal(t, must(t, "query", here, "*", "--keys"), must(t, "query", restored, "*", "--keys"))
	for _, url := range []string{here, there} { // the store is opened, and then nobody tells of a chain
		_, errs, code := varve(t, "follow", "http://127.0.0.1:1", url, "--attempts=1")
		require.Equal(t, cli.ExitError, code)
		require.Contains(t, errs, "connection refused")
	}
	_, errs, code := varve(t, "import", there, "sqlite:"+filepath.Join(dir, "x.db"))
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "varve restore")
}

// TestCompareHere: who names no engine gets those that there is a program for.
func TestCompareHere(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv(clitest.AsCommand, "1")
	out, errs, code := varve(t, "compare", "--entities=100", "--commits=1", "--repeats=1", "--layouts=compact")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "compare: without libsql: put varve-libsql beside this binary or on the PATH: go install github.com/varvedb/varve/cmd/varve-libsql@latest\n")
	require.Regexp(t, `(?s)^.* Q1 on sqlite, repeat 1 \(1 of 4.*RealBlocks/engine=sqlite/\S+, repeat 1\n {4}get-p50-ms [\d.]+, .* Q1 on postgres, repeat 1 \(4 of 4`, errs)
	require.Regexp(t, `^compare: without .*\nFirst look on sqlite, sqlitego, duckdb, postgres: 1 repeats in turns, with the layouts compact, then a table\n`, errs)
	require.Contains(t, errs, "Every answer was compared with the right one")
	require.Regexp(t, `(?s)^\*\*blocks of .*\n\| sqlite   \| compact \| .*\n\| postgres \| compact \| .*\n\w+ \w+ (is|are each|and) .* cannot be relied on: .*\.\n\n$`, out, "of one repeat nothing can be told")
}

// TestSymbols: the program has no table of what its engines define.
func TestSymbols(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := elf.Open(self)
	require.NoError(t, err)
	defer program.Close()
	symbols, err := program.DynamicSymbols()
	require.NoError(t, err)
	require.NotEmpty(t, symbols)
	for _, s := range symbols {
		require.False(t, s.Section != elf.SHN_UNDEF && strings.Contains(s.Name, "duckdb"), s.Name)
	}
}

// TestOtherProcess: the other program gets what a process gets, standard input and
// signals, under the same number.
func TestOtherProcess(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	url := "libsql:" + filepath.Join(t.TempDir(), "x.db")
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(self, args...)
		cmd.Env = append(os.Environ(), clitest.AsCommand+"=1")
		return cmd
	}
	appended := command("events", "append", url)
	appended.Stdin = strings.NewReader(`{"type":"hello","data":1}` + "\n")
	text, err := appended.CombinedOutput()
	require.NoError(t, err, "%s", text)

	follow := command("events", "tail", url, "--from=1")
	var out, errs output
	follow.Stdout, follow.Stderr = &out, &errs
	require.NoError(t, follow.Start())
	t.Cleanup(func() { _ = follow.Process.Kill() }) // where the test failed
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "hello") }, time.Minute, 5*time.Millisecond, &errs)
	running, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", follow.Process.Pid))
	require.NoError(t, err)
	require.Equal(t, "varve-libsql", filepath.Base(running))
	require.NoError(t, follow.Process.Signal(syscall.SIGINT))
	_ = follow.Wait() // the exit code is asserted
	require.Contains(t, []int{cli.ExitOK, cli.ExitInterrupted}, follow.ProcessState.ExitCode(), &errs)
}

// TestTwoLibrariesAtOnce: of two engines that make the same file at the same moment one does,
// since SQLite's locks do not keep two libraries of one process apart.
func TestTwoLibrariesAtOnce(t *testing.T) {
	for i := range 5 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i))
		start, engines := make(chan struct{}), make(chan error, 2)
		var opened [2]*store.DB
		for n, scheme := range []string{"sqlite:", "sqlitego:"} {
			go func() {
				<-start
				var err error
				opened[n], err = store.Open(t.Context(), scheme+path, nil)
				engines <- err
			}()
		}
		close(start)
		first, second := <-engines, <-engines
		for _, db := range opened {
			if db != nil {
				require.NoError(t, db.Close())
			}
		}
		require.ErrorIs(t, errors.Join(first, second), store.ErrLocked)
		require.True(t, first == nil || second == nil, "%v, %v", first, second)
	}
}
