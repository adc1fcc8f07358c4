package duckdb_test

import (
	"testing"

	"github.com/varvedb/varve/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{NewURL: func(t testing.TB) string {
		return "duckdb://" + t.TempDir() + "/varve.duckdb"
	}})
}
