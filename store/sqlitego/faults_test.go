package sqlitego_test

import (
	"testing"

	"github.com/varvedb/varve/internal/faulttest"
)

func TestFlips(t *testing.T) {
	faulttest.RunFlips(t, "sqlitego", 6, "arkiv", "compact", "events")
}

func TestResources(t *testing.T) {
	faulttest.RunResources(t, "sqlitego", "")
}
