package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/internal/lint"
	"github.com/varvedb/varve/testdata"
)

// TestLinesRoundTrip: a store that is written as lines, compressed or not, and read
// again has the same digest, also in another layout, and after a prune the same horizon.
func TestLinesRoundTrip(t *testing.T) {
	dir := t.TempDir()
	first := url(t, "a.db")
	must(t, "import", arkiv+"blocks.tar", first)
	for i, name := range []string{"a.jsonl", "a.jsonl.zst"} {
		file := filepath.Join(dir, name)
		require.Contains(t, must(t, "import", first, file), "91 blocks in ", "blocks that change nothing are not among the versions")
		again := url(t, "b.db") + "?layout=" + []string{"compact", "arkiv"}[i]
		for _, want := range []string{"91 blocks with 1285 changes of entities", "0 blocks with 0 changes of entities"} {
			out := must(t, "import", file, again)
			require.Contains(t, out, "digest "+testdata.ArkivDigest)
			require.Contains(t, out, want)
		}
		require.Contains(t, must(t, "check", again, "--against", file), "SOUND source: 800 entities are as they were created")
	}
	ofTar := filepath.Join(dir, "tar.jsonl")
	must(t, "import", arkiv+"blocks.tar", ofTar)
	require.Contains(t, must(t, "import", ofTar, url(t, "c.db")), "digest "+testdata.ArkivDigest, "with the operations of the feed")
	state := filepath.Join(dir, "state.jsonl")
	must(t, "import", arkiv+"sqlite-bitmap-store.db", state)
	require.Contains(t, must(t, "import", state, url(t, "d.db")), "readable from block 1131 on")
}

// TestLinesGoOn: an import goes on where it ended, also from standard input, and refuses
// lines that contradict the store.
func TestLinesGoOn(t *testing.T) {
	text, err := os.ReadFile(exampleLines)
	require.NoError(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	dst, file := url(t, "a.db"), filepath.Join(t.TempDir(), "own.jsonl")
	write := func(text []byte) { require.NoError(t, os.WriteFile(file, text, 0o600)) }
	write(bytes.Join(lines[:2], nil))
	require.Contains(t, must(t, "import", file, dst), "2 blocks with 3 changes of entities")
	write(bytes.Replace(text, []byte("1500"), []byte("1501"), 1))
	_, errs, code := varve(t, "import", file, dst)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "block 2: the histories differ: the store holds another block of this number")
	write(append(bytes.Join(lines[:3], nil), `{"block":4,"operations":[{"op":"create"}]}`...))
	_, errs, code = varve(t, "import", file, dst)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, `own.jsonl: line 4: at "/operations/0": field "key" is missing`)

	// The command of another process, for its standard input.
	command := exec.CommandContext(t.Context(), os.Args[0], "import", "-", dst)
	command.Env, command.Stdin = append(os.Environ(), clitest.AsCommand+"=1"), bytes.NewReader(text)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "head 6, digest ")
	var want, got struct{ Store struct{ Head, Digest any } }
	whole := url(t, "b.db")
	must(t, "import", exampleLines, whole)
	require.NoError(t, json.Unmarshal([]byte(must(t, "inspect", whole, "--json")), &want))
	require.NoError(t, json.Unmarshal([]byte(must(t, "inspect", dst, "--json")), &got))
	require.Equal(t, want, got)
	_, errs, code = varve(t, "import", "-", url(t, "c.db"), "--factor=2")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "standard input is read once")
}

// TestDocumentedLine imports the line that docs/blocks.md shows.
func TestDocumentedLine(t *testing.T) {
	page, err := os.ReadFile("../../docs/blocks.md")
	require.NoError(t, err)
	_, line, found := strings.Cut(string(page), "```json\n")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "```")
	file := filepath.Join(t.TempDir(), "a.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(line, "\n", "")), 0o600))
	require.Contains(t, must(t, "import", file, url(t, "a.db")), "1 block with 1 change of entities")
}

// TestAnswerOnLines runs the script of docs/blocks.md on its table, asks the store, and answers the
// five questions on the lines, with short phases.
func TestAnswerOnLines(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this machine has no python3")
	}
	root, err := lint.Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs/blocks.md"))
	require.NoError(t, err)
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1")
	t.Chdir(t.TempDir())
	for _, c := range lint.Commands("docs/blocks.md", page) {
		if c.Words[0] == "python3" {
			require.LessOrEqual(t, strings.Count(c.Words[2], "\n"), 20)
			out, err := exec.CommandContext(t.Context(), "sh", "-c", c.Shell).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	dst := "sqlite:store.db"
	require.Contains(t, must(t, "import", "shop.jsonl", dst), "500 blocks with 5000 changes of entities")
	require.Equal(t, "5000\n", must(t, "query", dst, `type = "product"`, "--count"))
	require.Equal(t, "1\n", must(t, "query", dst, `name = "product 4999" && price = 893 && stock = 39`, "--count"))

	dir := "out"
	begun := fmt.Sprintf(`{"source":"shop.jsonl","durability":"durable","memory":%d,"base":1,"phase":50000000}`, 1<<30)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "answer.json"), []byte(begun), 0o600))
	var out, errs bytes.Buffer
	code := cli.Run(context.WithoutCancel(t.Context()), []string{"answer", "shop.jsonl", "--engines=sqlite", "--layouts=compact", "--sizes=1", "--repeats=1", "--time=10m", "--out=" + dir}, &out, &errs)
	require.Equal(t, cli.ExitOK, code, errs.String())
	require.FileExists(t, filepath.Join(dir, "report.html"))
	results, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, results)
}
