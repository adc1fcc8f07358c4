package sqlite_test

import (
	"testing"

	_ "github.com/varvedb/varve/store/sqlite"
	"github.com/varvedb/varve/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{NewURL: func(t testing.TB) string {
		return "sqlite://" + t.TempDir() + "/varve.db"
	}})
}
