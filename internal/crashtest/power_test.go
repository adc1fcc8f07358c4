package crashtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestPower cuts the power a few times: durable loses nothing, relaxed nothing but a
// tail.
func TestPower(t *testing.T) {
	cuts := 2
	if testing.Short() {
		cuts = 1
	}
	for _, level := range []driver.Durability{driver.Durable, driver.Relaxed} {
		for _, layout := range []string{"compact", EventsLayout} {
			t.Run(string(level)+"/"+layout, func(t *testing.T) {
				trial := &Power{Worker: Reexec, Level: level}
				r := tryTurn(t, trial, Cell{Engine: "sqlite", Layout: layout, Seed: 3, Faults: cuts})
				require.Empty(t, r.Violations)
				require.Equal(t, cuts, r.Faults(trial, "sqlite", layout))
				if level == driver.Durable {
					require.Zero(t, r.Rows[0].Outcomes["steps lost"])
				}
			})
		}
	}
}

// TestPowerBites: what nobody syncs is lost, and the trial says so.
func TestPowerBites(t *testing.T) {
	trial := &Power{Worker: Reexec, Level: driver.Unsafe}
	for seed := range uint64(20) {
		r := tryTurn(t, trial, Cell{Engine: "sqlite", Layout: "arkiv", Seed: seed, Faults: 1})
		require.Empty(t, r.Violations)
		if o := r.Rows[0].Outcomes; o["steps lost"] > 0 || o["stores destroyed"] > 0 {
			return
		}
	}
	t.Fatal("the power was cut 20 times and nothing was lost")
}
