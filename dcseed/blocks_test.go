package dcseed

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

var update = flag.Bool("update", false, "write the golden digests instead of comparing with them")

// The digests cover the whole history, as a store computes them. They change
// when any byte of the data does, on any machine.
func TestGoldenDigests(t *testing.T) {
	scaled, err := ForScale(0.00005)
	require.NoError(t, err)
	var lines []string
	for name, cfg := range map[string]Config{
		"small": small(), "scale-0.00005": scaled, "expiring": expiring(),
	} {
		m := newModel(t, cfg)
		store := newMemory(t)
		store.applyAll(m.initial())
		initial := store.digest
		load := uint64(30)
		if name == "expiring" {
			load = 4_000
		}
		store.applyAll(m.load(load))
		lines = append(lines, fmt.Sprintf("%s initial %s load-%d %s", name, initial, load, store.digest))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "digests.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "the data have changed; if that is meant: go test ./dcseed -run TestGoldenDigests -update")
}

func TestBlockIsTheStream(t *testing.T) {
	m := newModel(t, small())
	blocks := append(collect(t, m.initial()), collect(t, m.load(10))...)
	for i, want := range blocks {
		require.EqualValues(t, i+1, want.Number)
		got, err := m.Block(want.Number)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, blocks[3:12], collect(t, m.Blocks(4, 12)), "resumed across the end of the initial state")
	require.Empty(t, collect(t, m.Blocks(5, 4)))
	require.Empty(t, collect(t, m.load(0)))
}

func TestBlockErrors(t *testing.T) {
	m := newModel(t, small())
	for _, number := range []uint64{0, entity.MaxBlockNumber + 1} {
		for _, err := range m.Blocks(number, number+3) {
			require.ErrorContains(t, err, fmt.Sprintf("block %d", number))
		}
	}
}
