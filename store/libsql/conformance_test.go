package libsql

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/varvedb/varve/store/storetest"
)

var everyLayout = flag.Bool("every-layout", false, "run the conformance suites on every layout, which takes minutes")

// TestConformance leaves out the layouts that differ from arkiv in nothing but their
// indexes and statistics: those are tried on SQLite, whose SQL is the same.
func TestConformance(t *testing.T) {
	h := storetest.Harness{
		NewURL: func(t testing.TB) string { return "libsql://" + filepath.Join(t.TempDir(), "varve.db") },
		Checks: 10,
	}
	if !*everyLayout {
		h.Layouts = []string{"arkiv", "simple", "compact"}
	}
	storetest.Run(t, h)
}
