package libsql

import (
	"path/filepath"
	"testing"

	"github.com/varvedb/varve/store/storetest"
)

// TestConformance leaves out the layouts that differ from arkiv in nothing but their
// indexes and statistics: those are tried on SQLite, whose SQL is the same.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		NewURL:  func(t testing.TB) string { return "libsql://" + filepath.Join(t.TempDir(), "varve.db") },
		Checks:  10,
		Layouts: []string{"arkiv", "arkiv-ordered", "simple", "compact"},
	})
}
