package duckdb_test

import (
	"flag"
	"path/filepath"
	"testing"

	_ "github.com/varvedb/varve/store/duckdb"
	"github.com/varvedb/varve/store/storetest"
)

var everyLayout = flag.Bool("every-layout", false, "run the conformance suites on every layout, which takes minutes")

// TestConformance leaves out the layouts that differ from arkiv in nothing but their
// indexes, except the one that is made for this engine, and tries few random histories: a statement costs more here than on SQLite.
func TestConformance(t *testing.T) {
	h := storetest.Harness{
		NewURL: func(t testing.TB) string {
			return "duckdb://" + filepath.Join(t.TempDir(), "varve.duckdb") + "?memory=128MiB"
		},
		Checks: 2,
	}
	if !*everyLayout {
		h.Layouts = []string{"arkiv", "arkiv-columnar", "simple", "compact"}
	}
	storetest.Run(t, h)
}
