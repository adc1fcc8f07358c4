package crashtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFull fills the disk under a worker of each engine; varve torture does so often.
func TestFull(t *testing.T) {
	for _, c := range []Cell{
		{Engine: "sqlite", Layout: "compact", Seed: 5, Faults: 2},
		{Engine: "duckdb", Layout: "compact", Seed: 5, Faults: 1},
		{Engine: "postgres", Layout: EventsLayout, Seed: 5, Faults: 1},
	} {
		t.Run(c.Engine, func(t *testing.T) {
			t.Parallel()
			r := tryRound(t, Full(), c)
			skipWithoutServer(t, r)
			require.Empty(t, r.Violations)
			require.Equal(t, c.Faults, r.Faults)
			require.NotZero(t, r.Outcomes["reopened"])
		})
	}
}

// TestFullBites: an acknowledged step that is not in the store is found. Here
// it never was.
func TestFullBites(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		if r := tryRound(t, full(true), Cell{Engine: "sqlite", Layout: "arkiv", Seed: seed, Faults: 1}); len(r.Violations) > 0 {
			require.Contains(t, r.Violations[0].Text, "lost")
			return
		}
	}
	t.Fatal("the disk was full 5 times and nothing was lost")
}
