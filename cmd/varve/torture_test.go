package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/crashtest"
)

// TestTorture kills two workers on each layout.
func TestTorture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reports", "crash.json")
	out, errs, code := varve(t, "torture", "--trials=crash", "--engines=sqlite", "--kills=2", "--seed=5", "--dir="+t.TempDir(), "--out="+file)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "violations")
	require.Contains(t, errs, "seed 5")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var report crashtest.Report
	require.NoError(t, json.Unmarshal(text, &report))
	require.Len(t, report.Rows, 3)
	for _, row := range report.Rows {
		require.Equal(t, 2, row.Faults)
	}
}

func TestTortureUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--engines=mysql"}, {"--layouts=none"}, {"--trials=none"}, {"--turn=0"}, {"--for=-1s"},
	} {
		_, errs, code := varve(t, append([]string{"torture"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, errs)
	}
}
