package postgres

import (
	"testing"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/storetest"
)

// TestConformance leaves out the layouts that differ from arkiv-analyzed in
// nothing but their indexes and statistics.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		NewURL: pgtest.NewURL, Server: true, Checks: 5, Layouts: []string{"arkiv-analyzed", "arkiv-ordered", "simple", "compact"},
	})
}
