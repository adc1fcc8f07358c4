package main

import (
	"testing"

	"github.com/varvedb/varve/internal/cli/clitest"
)

// TestFiles: no command touches a file that it has not made.
func TestFiles(t *testing.T) { clitest.RunFiles(t, "libsql") }
