package libsql

import (
	"path/filepath"
	"testing"

	"github.com/varvedb/varve/store/storetest"
)

func TestCompact(t *testing.T) {
	h := storetest.Harness{
		NewURL: func(t testing.TB) string { return "libsql://" + filepath.Join(t.TempDir(), "varve.db") },
		Checks: 10,
	}
	storetest.RunCompact(t, h)
}
