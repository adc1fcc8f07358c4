// Package faulttest has test suites that damage an engine's stores (package
// fault) or limit their resources.
package faulttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/internal/fault"
)

// RunFlips tries some faults on each layout of an engine.
func RunFlips(t *testing.T, engine string, faults int, layouts ...string) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			for seed := range uint64(2) { // one of a store that was closed, one of a killed one
				require.Zero(t, flip(t, false, engine, layout, seed+1, faults))
			}
		})
	}
}

// RunBite proves that the trial detects damage: with the check switched off,
// damage to the files of an engine without page checksums must lead to a wrong
// answer.
func RunBite(t *testing.T, engine, layout string, faults int) {
	require.NotZero(t, flip(t, true, engine, layout, 1, faults), "%d faults", faults)
}

// flip tries faults and returns the number of unreported wrong answers.
func flip(t *testing.T, blind bool, engine, layout string, seed uint64, faults int) int {
	t.Helper()
	r, err := crashtest.Torture(t.Context(), crashtest.Options{
		Trials: []crashtest.Trial{fault.Flips(blind)}, Engines: []string{engine}, Layouts: []string{layout},
		Seed: seed, Kills: faults, Dir: t.TempDir(), Log: t.Logf,
	})
	require.NoError(t, err)
	require.Len(t, r.Rows, 1)
	t.Logf("%v", r.Rows[0].Outcomes)
	for _, v := range r.Rows[0].Violations {
		t.Log(v.Text)
	}
	return r.Broken()
}
