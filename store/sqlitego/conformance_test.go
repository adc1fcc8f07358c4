package sqlitego_test

import (
	"testing"

	_ "github.com/varvedb/varve/store/sqlitego"
	"github.com/varvedb/varve/store/storetest"
)

// harness leaves out the layouts that differ from arkiv in nothing but their indexes and
// statistics: those are tried on the other SQLite, whose SQL is the same.
var harness = storetest.Harness{
	NewURL:  func(t testing.TB) string { return "sqlitego://" + t.TempDir() + "/varve.db" },
	Layouts: []string{"arkiv", "arkiv-ordered", "simple", "compact"},
	Checks:  5,
}

func TestConformance(t *testing.T) { storetest.Run(t, harness) }
