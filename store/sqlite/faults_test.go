package sqlite_test

import (
	"testing"

	"github.com/varvedb/varve/internal/faulttest"
)

func TestFlips(t *testing.T) {
	faulttest.RunFlips(t, "sqlite", 12, "arkiv", "compact", "events")
}

// TestFlipsBite: some damage is found by the digest and the checksums alone.
func TestFlipsBite(t *testing.T) {
	faulttest.RunBite(t, "sqlite", "compact", 40)
}

func TestResources(t *testing.T) {
	faulttest.RunResources(t, "sqlite", "")
}
