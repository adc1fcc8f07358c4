package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
)

// TestMain makes the test binary the command where torture starts it again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "crash-worker" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// TestTorture kills a few workers on libSQL; internal/crashtest does so on the other
// engines.
func TestTorture(t *testing.T) {
	require.Contains(t, must(t, "torture", "--trials=crash", "--engines=libsql", "--kills=6", "--seed=1", "--dir="+t.TempDir()), "libsql")
}
