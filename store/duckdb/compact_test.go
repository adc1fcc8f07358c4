package duckdb_test

import (
	"path/filepath"
	"testing"

	"github.com/varvedb/varve/store/storetest"
)

func TestCompact(t *testing.T) {
	h := storetest.Harness{
		NewURL: func(t testing.TB) string {
			return "duckdb://" + filepath.Join(t.TempDir(), "varve.duckdb") + "?memory=128MiB"
		},
		Checks: 2,
	}
	storetest.RunCompact(t, h)
}
