package duckdb_test

import (
	"path/filepath"
	"testing"

	_ "github.com/varvedb/varve/store/duckdb"
	"github.com/varvedb/varve/store/storetest"
)

// TestConformance leaves out the layouts that differ from arkiv in nothing but their
// indexes, except the one that is made for this engine. It tries few random histories, since
// a statement costs more here than on SQLite.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		NewURL: func(t testing.TB) string {
			return "duckdb://" + filepath.Join(t.TempDir(), "varve.duckdb") + "?memory=128MiB"
		},
		Checks:  4,
		Layouts: []string{"arkiv", "arkiv-columnar", "simple", "compact"},
	})
}
