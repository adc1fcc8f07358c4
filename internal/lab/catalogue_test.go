package lab

import (
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/store/driver"
	_ "github.com/varvedb/varve/store/sqlite"
)

func find(t *testing.T, id string) Experiment {
	t.Helper()
	found, err := Find([]string{id})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// TestSections: each experiment is in the section of its letter once, with a question, and with tables
// whose filters and projections can be read.
func TestSections(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Sections() {
		for _, e := range s.Experiments {
			require.False(t, seen[e.ID], e.ID)
			seen[e.ID] = true
			require.Equal(t, s.Letter(), e.ID[:1])
			require.NotEmpty(t, e.Title, e.ID)
			require.NotEmpty(t, e.Question, e.ID)
			require.NotEmpty(t, e.Views, e.ID)
			_, err := new(report.Set).Answer(e)
			require.NoError(t, err)
		}
	}
	require.True(t, seen[machine], "which is looked at before each, and is not asked for")
	_, err := Find([]string{machine})
	require.Error(t, err)
}

// TestSource: on a source of the user's own there is the everyday mix alone, in whole multiples, and
// under a name that is not the base profile's. What cannot run on one is refused by name, and left
// out of a section.
func TestSource(t *testing.T) {
	l := testLab(t)
	l.Source, l.Sizes = "../../testdata/arkiv-small/blocks.tar", []float64{1.5}
	own, err := FindOwn(nil)
	require.NoError(t, err)
	for _, e := range own {
		list, err := l.Plan(e)
		require.NoError(t, err, e.ID)
		require.NotEmpty(t, list, e.ID)
		for _, v := range list {
			require.Equal(t, "own-blocks", v.Keys.Get("profile"), e.ID)
			require.Contains(t, []string{"", "W"}, v.Keys.Get("mix"), e.ID)
			require.Contains(t, []string{"", "1", "2"}, v.Keys.Get("scale"), e.ID)
		}
	}
	section, err := FindOwn([]string{"a", "d3"})
	require.NoError(t, err)
	require.Len(t, section, 3, "A8, A12, D3")
	for _, ids := range [][]string{{"A1"}, {"A", "A5"}, {"F"}, {"Z"}} {
		_, err = FindOwn(ids)
		require.Error(t, err, "%v", ids)
	}
}

// TestOnly: configurations are chosen by the keys of their names, and an empty
// choice is an error.
func TestOnly(t *testing.T) {
	l := testLab(t)
	l.Only = map[string]string{"clients": "10", "mix": "A W"}
	list, err := l.Plan(find(t, "C1"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, v := range list {
		require.Equal(t, "10", v.Keys.Get("clients"))
		seen[v.Keys.Get("mix")] = true
	}
	require.Equal(t, map[string]bool{"A": true, "W": true}, seen)
	_, err = l.Plan(find(t, "D1"))
	require.ErrorContains(t, err, "--only leaves nothing of what is named like engine=sqlite/")
}

// TestOrder: another order in each repeat, and other questions, which are the same for all that
// is compared.
func TestOrder(t *testing.T) {
	l := testLab(t)
	order := func(repeat int) (names []string, seed uint64) {
		l.Repeat = repeat
		list, err := l.Plan(find(t, "C1"))
		require.NoError(t, err)
		for i := range list {
			names = append(names, list[i].line())
		}
		return names, l.questionSeed()
	}
	first, seed := order(0)
	again, same := order(0)
	second, other := order(1)
	require.Equal(t, first, again)
	require.Equal(t, seed, same)
	require.ElementsMatch(t, first, second)
	require.NotEqual(t, first, second)
	require.NotEqual(t, seed, other)

	reversed := slices.Clone(first)
	slices.Reverse(reversed)
	require.Equal(t, reversed, second, "two repeats are a round: what came last comes first")
	require.Contains(t, first[0], "layout=compact", "the reference is around the others")
	third, _ := order(2)
	require.NotEqual(t, first, third, "each round has an order of its own")
	l.Sitting = "later"
	_, later := order(0)
	require.NotEqual(t, seed, later, "each sitting has seeds of its own")
}

// TestSizes: lines that are measured at each of --sizes have the scale in their
// name.
func TestSizes(t *testing.T) {
	l := testLab(t)
	l.Sizes, l.Rates, l.Layouts = []float64{1, 5}, []float64{7}, []string{"compact"}
	for id, each := range map[string]int{"C1": 2 * len(mix.Names), "C4": 20, "D1": 1, "I3": 1} {
		list, err := l.Plan(find(t, id))
		require.NoError(t, err)
		scales := map[string]int{}
		for _, v := range list {
			scales[v.Keys.Get("scale")]++
		}
		require.Equal(t, map[string]int{"1": each, "5": each}, scales, id)
	}
}

// TestRenewed: a process whose memory earlier configurations have used gives way to a new one
// before a smaller budget holds, and to begin with it does not.
func TestRenewed(t *testing.T) {
	renewed := errors.New("renewed")
	l := &Lab{Renew: func() error { return renewed }}
	within := func() error { return l.trial(new(Record)).setMemory(1 << 20) }
	require.NoError(t, within())
	l.used = true
	require.ErrorIs(t, within(), renewed)
	l.Renew = func() error { return errors.ErrUnsupported }
	require.NoError(t, within(), "where a process cannot become another, it goes on")
	runs := 0
	l = testLab(t)
	l.Renew = func() error { return renewed }
	run := func() error {
		return l.trial(&Record{Keys: l.OnBase("compact", l.Scale)}).WithBase(t.Context(), func() error { runs++; return nil })
	}
	require.ErrorIs(t, run(), renewed, "it has loaded the data set")
	require.NoError(t, run())
	require.Equal(t, 1, runs)
}

// testLab is one on SQLite with the least data.
func testLab(t *testing.T) *Lab {
	t.Helper()
	cache, err := bench.OpenCache(t.TempDir())
	require.NoError(t, err)
	return &Lab{
		Options: Options{Scale: 0.0005, Phase: 50 * time.Millisecond, Seed: 1, Durability: driver.Durable, Memory: 64 << 20, Sitting: "now"},
		Engine:  bench.Engine{Name: "sqlite"}, Cache: cache, Log: t.Logf,
	}
}

// TestAside: a heap as large as what stays of Aside may not double again, at the engine's cost.
func TestAside(t *testing.T) {
	l, kept := testLab(t), []byte(nil)
	require.NoError(t, l.Aside(func() error { kept = make([]byte, 200<<20); return nil }))
	require.Less(t, debug.SetMemoryLimit(math.MaxInt64), l.added+l.Memory, len(kept))
}

// TestPrepared: the checks of a data set's blocks are made without a limit, and
// their memory is added to the budget.
func TestPrepared(t *testing.T) {
	l := testLab(t)
	v := l.operation("Commit", "compact", func(d *bench.Dataset, cp *bench.Copy) (measured, error) {
		require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1))
		return l.commits(d, cp, bench.CommitConfig{Blocks: bench.Blocks(d.Profile, d.Gen.Next(perBlock))})
	})
	require.NoError(t, v.Run(l.trial(new(Record)), t.Context()))
	require.Less(t, debug.SetMemoryLimit(math.MaxInt64), int64(math.MaxInt64))
}
