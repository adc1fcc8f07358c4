package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/internal/lint"
)

// long are the commands that are interrupted before they begin, when what they are given has been
// checked; why, and where they run. All others run to their end here.
var long = map[string]string{
	"answer":  "measures for minutes: TestAnswer",
	"compare": "measures for minutes: TestCompareWithServer", "run": "measures for hours: TestRunRepeats",
	"torture": "kills for long: TestTorture", "serve": "runs until it is told to end: TestServe",
	"follow": "follows a chain that is not here: TestFollow", "node": "the same: TestNode",
}

// made is the set of results from which pages go on: what makes it or reads it is not long.
const made = "results/first"

// sizes replace the values of flags here, and brief is added to a run.
var (
	sizes = map[string]string{"--scale": "0.002", "--load": "3"}
	brief = []string{"--scale=0.0005", "--phase=50ms", "--repeats=1", "--no-probe"}
)

// places are replaced, and the size of a stream.
var places = strings.NewReplacer("mendoza:scale=0.05", "mendoza:scale=0.002", "dc:scale=0.01", "dc:scale=0.002", "load=500", "load=5", "load=100", "load=3",
	"sqlite:///var/lib/varve/", "sqlite:", "${CREDENTIALS_DIRECTORY}/", "")

// system are the tools with which pages make files.
var system = []string{"head", "echo", "python3"}

// TestDocumentedCommands runs the commands of each page in their order, in a directory that has
// nothing but the checkout's testdata when the page begins.
func TestDocumentedCommands(t *testing.T) {
	besides(t)
	root, err := lint.Root()
	require.NoError(t, err)
	files, err := lint.Files(root, ".md", ".go")
	require.NoError(t, err)
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1") // for the processes that measure
	ran := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		commands := lint.Commands(name, text)
		if !slices.ContainsFunc(commands, func(c lint.Command) bool { _, ok := varveArgs(c.Words); return ok }) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			require.NoError(t, os.Symlink(filepath.Join(root, "testdata"), "testdata"))
			line := 0
			for _, c := range commands {
				args, ok := varveArgs(c.Words)
				switch {
				case ok:
					ran[args[0]] = true
					documented(t, &c, small(args))
				case slices.Contains(system, c.Words[0]) && c.Line != line:
					if _, err := exec.LookPath(c.Words[0]); err != nil {
						t.Skipf("this machine has no %s", c.Words[0])
					}
					out, err := exec.CommandContext(t.Context(), "sh", "-c", c.Shell).CombinedOutput()
					require.NoError(t, err, "%s\n%s", &c, out)
				}
				line = c.Line
			}
		})
	}
	for name := range long {
		require.True(t, ran[name], "no document shows %s; take it off the list", name)
	}
}

// documented runs a command, or checks its arguments.
func documented(t *testing.T, c *lint.Command, args []string) {
	t.Helper()
	want := []int{cli.ExitOK}
	if args[0] == "bench" {
		want = append(want, cli.ExitNotChecked) // of few runs a side
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line := strings.Join(args, " ")
	if long[args[0]] != "" && !strings.Contains(line, made) || strings.Contains(line, "://") { // a server that is not here
		want = append(want, cli.ExitInterrupted)
		cancel()
	}
	var out, errs bytes.Buffer
	if code := cli.Run(ctx, args, &out, &errs); !slices.Contains(want, code) {
		t.Errorf("%s: exit code %d\n%s\nas it was run: varve %s", c, code, &errs, line)
	}
}

// varveArgs returns the arguments of a command that is varve itself or go run of it.
func varveArgs(words []string) ([]string, bool) {
	if words[0] == "varve" {
		return words[1:], len(words) > 1
	}
	if len(words) > 3 && words[1] == "run" && words[2] == "./cmd/varve" {
		return words[3:], true
	}
	return nil, false
}

// small returns arguments that name less data, in this directory.
func small(args []string) []string {
	args = slices.Clone(args)
	for i := range args {
		args[i] = places.Replace(args[i])
		if i > 0 {
			args[i] = cmp.Or(sizes[args[i-1]], args[i])
		}
	}
	if args[0] == "run" {
		args = append(args, brief...)
	}
	return args
}
