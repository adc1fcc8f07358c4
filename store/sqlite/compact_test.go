package sqlite_test

import (
	"testing"

	"github.com/varvedb/varve/store/storetest"
)

func TestCompact(t *testing.T) {
	h := storetest.Harness{NewURL: func(t testing.TB) string {
		return "sqlite://" + t.TempDir() + "/varve.db"
	}}
	storetest.RunCompact(t, h)
}
