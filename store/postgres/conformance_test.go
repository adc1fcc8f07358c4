package postgres

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/storetest"
)

var everyLayout = flag.Bool("every-layout", false, "run the conformance suites on every layout, which takes minutes")

// TestConformance leaves out the layouts that differ from arkiv-analyzed in
// nothing but their indexes and statistics.
func TestConformance(t *testing.T) {
	h := storetest.Harness{NewURL: pgtest.NewURL, Server: true, Checks: 2}
	if !*everyLayout {
		h.Layouts = []string{"arkiv-analyzed", "simple", "compact"}
	}
	storetest.Run(t, h)
}
