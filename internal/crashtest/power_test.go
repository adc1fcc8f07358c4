package crashtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestPower cuts the power twice: durable loses no step, not even one that was
// only read, and relaxed only the last steps.
func TestPower(t *testing.T) {
	for _, level := range []driver.Durability{driver.Durable, driver.Relaxed} {
		for _, layout := range []string{"compact", EventsLayout} {
			t.Run(string(level)+"/"+layout, func(t *testing.T) {
				t.Parallel()
				r := tryRound(t, Power(level), Cell{Engine: "sqlite", Layout: layout, Seed: 3, Faults: 2})
				require.Empty(t, r.Violations)
				require.Equal(t, 2, r.Faults)
				if level == driver.Durable {
					require.Zero(t, r.Outcomes["steps lost"])
				}
			})
		}
	}
}

// TestPowerBites: unsynced data is lost, and the trial reports it.
func TestPowerBites(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := tryRound(t, Power(driver.Unsafe), Cell{Engine: "sqlite", Layout: "arkiv", Seed: seed, Faults: 1})
		require.Empty(t, r.Violations)
		if r.Outcomes["steps lost"] > 0 || r.Outcomes["stores destroyed"] > 0 {
			return
		}
	}
	t.Fatal("the power was cut 20 times and nothing was lost")
}
