package faulttest

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/internal/fault"
)

// RunFlips tries some faults on each layout of an engine, and proves that a wrong
// answer is seen when the check is switched off.
func RunFlips(t *testing.T, engine string, faults int, layouts ...string) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			for seed := range uint64(2) {
				r := flip(t, &fault.Flips{}, engine, layout, seed+1, faults)
				require.Empty(t, r.Violations)
			}
		})
	}
}

// RunBite proves that the trial bites: with the check switched off, damage to the
// files of an engine without checksums of pages is a wrong answer.
func RunBite(t *testing.T, engine, layout string, faults int) {
	r := flip(t, &fault.Flips{Blind: true}, engine, layout, 1, faults)
	require.NotEmpty(t, r.Violations, "%d faults", faults)
}

func flip(t *testing.T, f *fault.Flips, engine, layout string, seed uint64, faults int) *crashtest.Report {
	t.Helper()
	dir, err := os.MkdirTemp("", "varve-flips-")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	r := &crashtest.Report{}
	c := crashtest.Cell{Engine: engine, Layout: layout, Dir: dir, Seed: seed, Faults: faults}
	require.NoError(t, f.Run(context.Background(), c, rand.New(rand.NewPCG(seed, 7)), r))
	for _, row := range r.Rows {
		t.Logf("%s %s: %d faults, %v", row.Engine, row.Layout, row.Faults, row.Outcomes)
	}
	return r
}
