package main

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/lint"
)

// quick are the documented commands that run to their end here.
var quick = []string{
	"import", "check", "backup", "restore", "bench", "report", "events",
	"inspect", "query",
}

// long are interrupted before they begin, when what they are given has been checked; why,
// and where they run.
var long = map[string]string{
	"answer":  "measures for minutes: TestAnswer",
	"compare": "measures for a minute: TestCompare", "run": "measures for hours: TestRunRepeats", "authz": "measures: TestRebac, TestSocial",
	"torture": "kills for long: TestTorture", "serve": "runs until it is told to end: TestServe",
	"follow": "follows a chain that is not here: TestFollow", "node": "the same: TestNode",
	"service-bench": "asks a service that is not here: TestServe",
}

// sizes are what flags get here.
var sizes = map[string]string{"--scale": "0.002", "--rate": "1000"}

// places are replaced, and the size of a stream.
var places = strings.NewReplacer("mendoza:scale=0.05", "mendoza:scale=0.002", "dc:scale=0.01", "dc:scale=0.002", "load=500", "load=5", "load=100", "load=3", "--before=1000000", "--before=2",
	"sqlite:///var/lib/varve/", "sqlite:", "${CREDENTIALS_DIRECTORY}/", "")

// TestDocumentedCommands runs every command of this program that a document shows,
// one after the other in one directory, as the document's readers would.
func TestDocumentedCommands(t *testing.T) {
	besides(t)
	root, err := lint.Root()
	require.NoError(t, err)
	files, err := lint.Files(root, ".md", ".go")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	t.Setenv(bench.CacheEnv, t.TempDir())
	prepare(t, root)
	ran := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll("results/latest")) // a document begins anew
		for _, c := range lint.Commands(name, text) {
			args, ok := varveArgs(c.Words)
			if !ok {
				continue
			}
			args = small(args)
			ran[args[0]] = true
			var out, errs bytes.Buffer
			want := []int{cli.ExitOK}
			if args[0] == "bench" {
				want = append(want, cli.ExitNotChecked) // of few runs a side
			}
			if long[args[0]] == "" && !slices.Contains(quick, args[0]) && args[0][0] != '-' {
				t.Errorf("%s: neither quick nor long", &c)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if !slices.Contains(quick, args[0]) || strings.Contains(strings.Join(args, " "), "://") { // a server that is not here
				want = append(want, cli.ExitInterrupted)
				cancel()
			}
			if code := cli.Run(ctx, args, &out, &errs); !slices.Contains(want, code) {
				t.Errorf("%s: exit code %d\n%s\nas it was run: varve %s", &c, code, &errs, strings.Join(args, " "))
			}
			cancel()
		}
	}
	for _, name := range slices.AppendSeq(quick, maps.Keys(long)) {
		require.True(t, ran[name], "no document shows %s; take it off the list", name)
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
		if _, err := strconv.ParseFloat(args[i], 64); err == nil && i > 0 {
			args[i] = cmp.Or(sizes[args[i-1]], args[i])
		}
	}
	return args
}

// prepare makes what the documents take to be there.
func prepare(t *testing.T, root string) {
	t.Helper()
	must(t, "import", filepath.Join(root, "testdata/arkiv-small/blocks.tar"), "sqlite:node.db")
	for _, name := range []string{"blocks.tar", "sqlite-store.db", "sqlite-bitmap-store.db"} {
		require.NoError(t, os.Symlink(filepath.Join(root, "testdata/arkiv-small", name), name))
	}
	require.NoError(t, os.WriteFile("keys", []byte(strings.Repeat("ab", 32)), 0o600))
	require.NoError(t, os.WriteFile("events.jsonl", []byte("{\"type\":\"CourseDefined\",\"tags\":[[\"course\",\"c1\"]]}\n{\"type\":\"Other\"}\n"), 0o600))
	require.NoError(t, os.CopyFS("results/first", os.DirFS(filepath.Join(root, "docs/results/campaign"))))
	for _, name := range []string{"old.txt", "new.txt"} {
		require.NoError(t, os.Symlink("results/first/A4-sqlite-20261123T160940Z.txt", name))
	}
	require.NoError(t, os.MkdirAll("docs/results", 0o755))
	require.NoError(t, os.Symlink(filepath.Join(root, "docs/results/PLAN.md"), "docs/results/PLAN.md"))
}
