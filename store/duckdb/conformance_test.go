package duckdb_test

import (
	"path/filepath"
	"testing"

	_ "github.com/varvedb/varve/store/duckdb"
	"github.com/varvedb/varve/store/storetest"
)

// A statement costs more here than on SQLite, so fewer layouts and random
// histories are tried; the layouts left out differ from these in their indexes
// only.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		NewURL: func(t testing.TB) string {
			return "duckdb://" + filepath.Join(t.TempDir(), "varve.duckdb") + "?memory=128MiB"
		},
		Layouts: []string{"arkiv", "simple", "bare", "compact"},
		Checks:  4,
	})
}
