package main

import (
	"testing"

	"github.com/varvedb/varve/internal/cli/clitest"
)

// TestFiles: no command touches a file that it has not made.
func TestFiles(t *testing.T) {
	for _, engine := range []string{"sqlite", "sqlitego", "duckdb"} {
		t.Run(engine, func(t *testing.T) { clitest.RunFiles(t, engine) })
	}
}
