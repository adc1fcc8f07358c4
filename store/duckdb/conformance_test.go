package duckdb_test

import (
	"path/filepath"
	"testing"

	_ "github.com/varvedb/varve/store/duckdb"
	"github.com/varvedb/varve/store/storetest"
)

// Statistics make no difference here, so arkiv-analyzed is arkiv once more.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		NewURL: func(t testing.TB) string {
			return "duckdb://" + filepath.Join(t.TempDir(), "varve.duckdb") + "?memory=128MiB"
		},
		Layouts: []string{"arkiv", "arkiv-pruned", "simple", "bare"},
		Checks:  5,
	})
}
