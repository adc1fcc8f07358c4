package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTorture kills a few workers on libSQL and fills its disk; internal/crashtest
// does so on the other engines.
func TestTorture(t *testing.T) {
	for _, trial := range [][]string{{"--trials=crash", "--kills=6"}, {"--trials=full", "--kills=1", "--layouts=compact"}} {
		args := append([]string{"torture", "--engines=libsql", "--seed=1", "--dir=" + t.TempDir()}, trial...)
		require.Contains(t, must(t, args...), "libsql")
	}
}
