package postgres_test

import (
	"testing"

	"github.com/varvedb/varve/internal/faulttest"
)

func TestFlips(t *testing.T) {
	faulttest.RunFlips(t, "postgres", 2, "events")
}

// TestResources: a server whose log does not fit ends, and starts again when there
// is space.
func TestResources(t *testing.T) {
	faulttest.RunResources(t, "postgres", faulttest.Limits{
		Points: 1, Disk: 200 << 20, Lost: true,
		NoReadOnly: "a server writes its log and its lock file to the directory",
	})
}
