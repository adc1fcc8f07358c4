package storetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/storetest/model"
)

var (
	histories = flag.Int("varve.histories", 0, "the number of random histories on each layout and at each size; 0: a default")
	seed      = flag.Uint64("varve.seed", 0, "the seed of random histories; 0: a random one")
)

// randomSource returns the random source of history i. A failing test logs its
// seed.
func randomSource(t *testing.T, i int) *rand.Rand {
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("-varve.seed=%d", from)
		}
	})
	return rand.New(rand.NewPCG(from, uint64(i)))
}

// worldBlocks is the number of blocks that create a store of many entities,
// with two operations for each entity.
const worldBlocks = 24

// draws are the possible steps of a history, with their weights: with few
// entities, and with many.
var draws = []struct {
	few, many int
	draw      func(*historyDrawer)
}{
	{6, 2, (*historyDrawer).apply},
	{2, 1, (*historyDrawer).load},
	{1, 0, (*historyDrawer).refuse},
	{2, 1, (*historyDrawer).rewind},
	{2, 0, (*historyDrawer).prune},
	{2, 1, (*historyDrawer).reopen},
	{2, 2, (*historyDrawer).get},
	{4, 24, (*historyDrawer).ask},
	{2, 2, (*historyDrawer).page},
	{2, 1, (*historyDrawer).maintain},
	{2, 0, (*historyDrawer).changes},
	{2, 1, (*historyDrawer).header},
	{1, 0, (*historyDrawer).hold},
}

// size configures histories: the size of the store, the number of steps, and
// how many histories are tried, on fast engines and on engines that open and
// commit slowly.
type size struct {
	entities, steps int
	quick, slow     int
}

var sizes = []size{{0, 40, 60, 0}, {1000, 30, 2, 1}, {10_000, 15, 1, 0}}

// runDifferential compares a store with the model in random histories: of blocks,
// loads, rewinds, prunes, merges, checkpoints, copies into other layouts, and of
// opening with other parameters. Everything happens to stores of few entities;
// stores of many have large indexes. Store and model must agree on every answer,
// every error and the digest. Engines that cannot be in one program are compared
// as well, because the model is the same.
//
// A history that fails is reduced and printed with its seed; see fail.
//
//	go test ./store/sqlite -run TestConformance/differential -varve.histories=1000 -timeout=0
func runDifferential(t *testing.T, h Harness) {
	layouts := h.layouts()
	if h.Layouts == nil && !h.slow() { // on other engines the layouts of the lab take too long
		layouts = schemas.EntityLayouts()
	}
	asked, found := 0, 0
	for _, h.layout = range layouts {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("layout=%s/entities=%d", h.layout, size.entities), func(t *testing.T) {
				a, f := runHistories(t, h, size)
				asked, found = asked+a, found+f
			})
		}
	}
	if asked > 1000 { // most entities of a single history may have been rewound
		require.GreaterOrEqual(t, found, asked/8, "many questions find something")
	}
	t.Run("kept", func(t *testing.T) {
		for name, history := range keptIn[step](t, keptEntityHistories) {
			for _, h.layout = range h.layouts() {
				t.Run(name+"/"+h.layout, func(t *testing.T) { replay[step](newMachine(t, h, false), history) })
			}
		}
	})
}

// runHistories tries histories until one fails. It returns how many questions
// were asked about many entities, and how many of them had results.
func runHistories(t *testing.T, h Harness, size size) (asked, found int) {
	for i, passed := 0, true; passed && i < h.histories(size); i++ {
		passed = t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := differential(t, h, size, i)
			if m.many {
				asked, found = asked+m.asked, found+m.found
			}
		})
	}
	return asked, found
}

// histories returns how many histories to try on a layout.
func (h Harness) histories(size size) int {
	few, runs, lab := size.entities == 0, schemas.HasRuns(h.layout), !slices.Contains(h.layouts(), h.layout)
	switch {
	case *histories > 0:
		return *histories
	case few && h.slow() && h.repeats():
		return 1
	case few && h.slow():
		return h.Checks
	case testing.Short() && (lab || few && h.repeats()):
		return 0
	case testing.Short() && few:
		return 6 // enough for each step to occur under the race detector
	case h.slow() || testing.Short():
		return size.slow
	case few && lab:
		return size.quick / 10 // it differs from another layout in its indexes only
	case few && h.repeats():
		return size.quick / 4
	case few && runs:
		return 2 * size.quick // each limit on the compaction debt leads to other states
	case few || runs || size.entities == sizes[1].entities && !lab && !h.repeats():
		return size.quick
	}
	return 0
}

// differential draws a history and runs it. If it fails, it is reduced.
func differential(t *testing.T, h Harness, size size, i int) (m *machine) {
	random := randomSource(t, i)
	failure := try(t, func(t testing.TB) {
		m = newMachine(t, h, size.entities > 0)
		defer m.close()
		d := &historyDrawer{&model.Drawer{Rand: random, Many: size.entities, NUL: 12}, m}
		if m.model.NoNUL {
			d.NUL = 200
		}
		if !m.many {
			d.Keys = model.FewKeys(8)
		}
		d.draw(size)
	})
	if failure != "" {
		start := func(t testing.TB) player[step] { return newMachine(t, h, m.many) }
		fail(t, keptEntityHistories, start, m.history, failure)
	}
	text := formatHistory(m.history)
	if !m.many {
		require.Equal(t, text, formatHistory(parseHistory[step](t, text)), "a history is read as it was written")
	}
	return m
}
