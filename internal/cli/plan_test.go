package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadPlan(t *testing.T) {
	t.Setenv("VARVE_CACHE", t.TempDir())
	path := filepath.Join(t.TempDir(), "plan.md")
	read := func(text string) ([]planned, error) {
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "'''", "```")), 0o600))
		return readPlan(path)
	}
	list, err := read(`
varve run Z9 # is text
'''sh
varve run C1 D1 --engines sqlite,duckdb --scale 1 --blocks 3 --out results/x  # 1h20m: both
varve report results/x
varve run --plan x.md --until 2h
varve run A --no-probe --out results/x  # 40m
'''
'''text
varve run Z9
'''
`)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "varve run C1 D1 --engines sqlite,duckdb --scale 1 --blocks 3 --out results/x", list[0].line)
	require.Equal(t, 80*time.Minute, list[0].runner.about)
	require.Len(t, list[0].runner.found, 2)
	require.Len(t, list[0].runner.engines, 2)
	require.Equal(t, 3, list[0].runner.blocks)
	require.NotNil(t, list[0].runner.watch)
	require.Nil(t, list[1].runner.watch)
	for text, want := range map[string]string{
		"no commands":                                                      "no line",
		"'''sh\nvarve run A1 --out x\n'''":                                 "as in # 20m",
		"'''sh\nvarve run Z9 --out x # 1m\n'''":                            "unknown experiment",
		"'''sh\nvarve run A1 --what x # 1m\n'''":                           "unknown flag",
		"'''sh\nvarve run A1 --scale 0 # 1m\n'''":                          "must be positive",
		"'''sh\nvarve run D5 --sizes 70 # 1m\n'''":                         "of a base profile at scale 116.667",
		"'''sh\nvarve run --list # 1m\n'''":                                "measures nothing",
		"'''sh\nvarve run A1 --engines x # 1m\n'''":                        "unknown engine",
		"'''sh\nvarve run A1 --out x # 1m\nvarve run A1 --out y # 1m\n'''": "another --out",
	} {
		_, err := read(text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestCampaignPlan: every command of the plan is one that runs, and none takes so long that
// a stop costs more than a part of it.
func TestCampaignPlan(t *testing.T) {
	t.Setenv("VARVE_CACHE", t.TempDir())
	list, err := readPlan("../../docs/results/PLAN.md")
	require.NoError(t, err)
	var whole time.Duration
	var long []string
	for _, p := range list {
		whole += p.runner.about
		tasks := 0
		for block := range p.runner.blocks {
			tasks += len(p.runner.tasks(block))
		}
		each := p.runner.about / time.Duration(tasks)
		if each > 40*time.Minute {
			long = append(long, p.line)
		}
		require.LessOrEqual(t, each, 75*time.Minute, p.line)
	}
	require.LessOrEqual(t, len(long), 2, "an hour of reorganisations and the largest store of arkiv: %q", long)
	require.LessOrEqual(t, whole, 18*time.Hour)
}
