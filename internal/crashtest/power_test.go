package crashtest

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

var powerCuts = flag.Int("varve.cuts", 2, "how often TestPower cuts the power of each store")

// TestPower cuts the power a few times: durable loses nothing, also of what was only
// read, relaxed nothing but a tail.
func TestPower(t *testing.T) {
	cuts := *powerCuts
	if testing.Short() {
		cuts = 1
	}
	for _, level := range []driver.Durability{driver.Durable, driver.Relaxed} {
		for _, layout := range []string{"compact", EventsLayout} {
			t.Run(string(level)+"/"+layout, func(t *testing.T) {
				trial := &Power{Worker: Reexec, Level: level}
				for seed, left := uint64(3), cuts; left > 0; seed, left = seed+1, left-turnCuts {
					n := min(left, turnCuts)
					r := tryTurn(t, trial, Cell{Engine: "sqlite", Layout: layout, Seed: seed, Faults: n})
					require.Empty(t, r.Violations)
					require.Equal(t, n, r.Faults(trial, "sqlite", layout))
					if level == driver.Durable {
						require.Zero(t, r.Rows[0].Outcomes["steps lost"])
					}
				}
			})
		}
	}
}

// TestPowerReads: what is read before it is durable is lost, and the trial says so.
func TestPowerReads(t *testing.T) {
	if *powerCuts < 20 {
		t.Skip("it takes luck; with -varve.cuts=20 it is tried")
	}
	trial := &Power{Worker: Reexec, Level: driver.Durable, EarlyRead: true}
	for seed := range uint64(*powerCuts) {
		r := tryTurn(t, trial, Cell{Engine: "sqlite", Layout: EventsLayout, Seed: seed, Faults: turnCuts})
		if len(r.Violations) > 0 {
			require.Contains(t, r.Violations[0].Text, "was read")
			return
		}
	}
	t.Fatalf("the power was cut %d times and nothing was lost that was read", *powerCuts*turnCuts)
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
