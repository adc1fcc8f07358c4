package libsql_test

import (
	"testing"

	"github.com/varvedb/varve/internal/faulttest"
)

func TestFlips(t *testing.T) {
	faulttest.RunFlips(t, "libsql", 6, "arkiv", "compact", "events")
}

func TestResources(t *testing.T) {
	faulttest.RunResources(t, "libsql", "")
}
