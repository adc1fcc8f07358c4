package libsql

import (
	"path/filepath"
	"testing"

	"github.com/varvedb/varve/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		NewURL: func(t testing.TB) string { return "libsql://" + filepath.Join(t.TempDir(), "varve.db") },
		Checks: 10,
	})
}
