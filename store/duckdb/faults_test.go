package duckdb_test

import (
	"testing"

	"github.com/varvedb/varve/internal/faulttest"
)

func TestFlips(t *testing.T) {
	faulttest.RunFlips(t, "duckdb", 3, "events")
}

func TestResources(t *testing.T) {
	faulttest.RunResources(t, "duckdb", "")
}
