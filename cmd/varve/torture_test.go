package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/crashtest"
)

// TestTorture kills two workers on each layout.
func TestTorture(t *testing.T) {
	out, errs, code := varve(t, "torture", "--trials=crash", "--engines=sqlite", "--kills=2", "--seed=5", "--dir="+t.TempDir(), "--json")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "seed 5")
	var report crashtest.Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Len(t, report.Rows, 3)
	for _, row := range report.Rows {
		require.Equal(t, 2, row.Faults)
	}
}
