package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// TestAnswer answers the five questions on a block tar with short phases, each
// with its results. The same command again measures nothing and prints the
// same, and a directory is of one source.
func TestAnswer(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1")
	t.Setenv(bench.CacheEnv, t.TempDir())
	dir := filepath.Join(t.TempDir(), "out")
	begun := fmt.Sprintf(`{"source":%q,"durability":"durable","memory":%d,"base":1,"phase":50000000}`, arkiv+"blocks.tar", 1<<30) // with short phases
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "answer.json"), []byte(begun), 0o600))
	args := []string{"answer", arkiv + "blocks.tar", "--engines=sqlite", "--layouts=compact", "--sizes=1,2", "--repeats=1", "--time=10m", "--out=" + dir}
	out, errs, code := varve(t, args...)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "measured  1 times, in phases of 50ms")
	require.Len(t, regexp.MustCompile(`(?m)^\d\. .*: (Cannot be judged: sqlite compact \((fewer than 3 runs|not busy)\)|the same)`).FindAllString(out, -1), 5, out)
	require.LessOrEqual(t, strings.Count(out, "\n"), 40, "the answer is one screen")
	const parts, plan, end = 6, 8, 2 // D1 and C1 at two sizes, I3 and I5 at one; what † means and where the page is
	require.Len(t, regexp.MustCompile(`(?m)^part \d of 6( \(about \w+ left\))?: [A-Z][\w ,]+ \([CDI]\d\) on sqlite at scale [12], repeat 1 of 1$`).FindAllString(errs, -1), parts, errs)
	require.LessOrEqual(t, strings.Count(errs, "\n"), parts+plan+end, "a line for each part: %s", errs)
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
		require.NotContains(t, line, "**")
	}
	full := must(t, append(args, "-v")...)
	require.Contains(t, full, "\nNine loads, rate and qps as asked\n", "every table")
	require.FileExists(t, filepath.Join(dir, "report.html"))
	first, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	require.NoError(t, err)

	again, errs, code := varve(t, args...)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Equal(t, out, again)
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	require.NoError(t, err)
	require.Equal(t, first, files)

	_, errs, code = varve(t, "answer", "--engines=sqlite", "--out="+dir)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "another source")
}
