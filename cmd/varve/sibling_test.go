package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/store"
)

// besides builds the program of libSQL once, and puts it on the PATH, because
// otherwise each command would ask the go command whether it is up to date.
func besides(t *testing.T) {
	t.Helper()
	dir, err := builtOther()
	require.NoError(t, err)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

var builtOther = sync.OnceValues(func() (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "varve", "bin")
	out, err := exec.Command("go", "build", "-o", dir+"/", "github.com/varvedb/varve/cmd/varve-libsql").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return dir, err
})

// TestOtherProgram: what this program does not link it hands to the one that does, with
// the same output and exit code as here.
func TestOtherProgram(t *testing.T) {
	besides(t)
	dir := t.TempDir()
	there, here := "libsql:"+filepath.Join(dir, "there.db"), "sqlite:"+filepath.Join(dir, "here.db")
	for _, c := range []struct {
		args []string
		code int
		same bool // the output must be the same, too
	}{
		{[]string{"query", "URL", "*"}, cli.ExitError, true}, // there is none yet
		{[]string{"import", arkiv + "blocks.tar", "URL"}, cli.ExitOK, false},
		{[]string{"query", "URL", `type = "node"`, "--keys"}, cli.ExitOK, true},
		{[]string{"query", "URL", `type = "node`}, cli.ExitUsage, true},
		{[]string{"check", "URL", "--against", arkiv + "blocks.tar"}, cli.ExitOK, false},
		{[]string{"import", "URL", filepath.Join(dir, "scaled.tar"), "--factor=2"}, cli.ExitOK, true},
		{[]string{"backup", "URL", "BACKUP"}, cli.ExitOK, false},
	} {
		run := func(url string) string {
			args := slices.Clone(c.args)
			for i := range args {
				args[i] = strings.NewReplacer("URL", url, "BACKUP", url[len("sqlite:"):]+".backup").Replace(args[i])
			}
			out, errs, code := varve(t, args...)
			require.Equal(t, c.code, code, "%s\n%s%s", args, out, errs)
			return strings.ReplaceAll(out, url, "URL")
		}
		want, got := run(here), run(there)
		require.True(t, want == got || !c.same && want != "" && got != "", "%v\n%s", c.args, got)
	}
	restored := "sqlite:" + filepath.Join(dir, "restored.db")
	must(t, "restore", filepath.Join(dir, "there.db.backup"), restored)
	require.Equal(t, must(t, "query", here, "*", "--keys"), must(t, "query", restored, "*", "--keys"))
	_, errs, code := varve(t, "import", there, "sqlite:"+filepath.Join(dir, "x.db"))
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "varve restore")
}

// TestCompareHere: without names, compare takes the engines that have a program
// here.
func TestCompareHere(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv(clitest.AsCommand, "1")
	r := begin(t, "compare", "--layouts=compact", "--repeats=1")
	first := regexp.MustCompile(`^compare: libsql is left out: put varve-libsql in this binary's directory or on the PATH: go install github.com/varvedb/varve/cmd/varve-libsql@latest\n` +
		`First look on sqlite, sqlitego, duckdb, postgres; layouts: compact; repeats: 1, alternating\n`)
	require.Eventually(t, func() bool { return first.MatchString(r.errs.String()) || len(r.code) > 0 }, time.Minute, 5*time.Millisecond, &r.errs)
	require.Equal(t, cli.ExitInterrupted, r.stop(), &r.errs)
}

// TestCompare compares two engines.
func TestCompare(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	out, errs, code := varve(t, "compare", "sqlite", "sqlitego", "--entities=100", "--commits=1", "--repeats=1", "--layouts=compact")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Regexp(t, `^First look on .*\npart 1 of 2.*: First look \(Q1\) on sqlite at scale 1, repeat 1 of 1\npart 2 of 2.*: First look \(Q1\) on sqlitego .*\n`, errs)
	require.Regexp(t, `Every answer was compared with the right one.\n$`, errs)
	require.LessOrEqual(t, strings.Count(errs, "\n"), 1+2+2+1, errs)
	const table = `(?s)^blocks of .*\n\| sqlite   \| compact \| .*\n\| sqlitego \| compact \| .*\nBest in \d of \d columns, in these sittings: .*\. Not to be relied on:\s.*\.\n`
	require.Regexp(t, table+`With -v: .*\n\n$`, out, "of one repeat nothing can be told")

	// With five engines and two layouts it is still on one screen.
	require.LessOrEqual(t, strings.Count(out, "\n")-2+5*2, 24, out)
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
	}

	// All lines have their full names and figures with -v, and all tables.
	out, errs, code = varve(t, "compare", "-v", "sqlite", "--entities=100", "--commits=1", "--repeats=1", "--layouts=compact")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Regexp(t, `(?s)\n  Q1 FirstLook/engine=sqlite/\S+, repeat 1\n {4}[\d.,KM]+ get-p50-ms, `, errs)
	require.Regexp(t, `(?s)\nwhat a commit costs\n.*\nwhat a read costs\n`, out)
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

// TestOtherProcess: the other program gets standard input and signals, under
// the same process number.
func TestOtherProcess(t *testing.T) {
	besides(t)
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
	var out, errs clitest.Output
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
