package gobench

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/probe"
	engines "github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/store/driver"
)

// TestRegistration: each engine has a benchmark for each name of the catalogue that
// has operations, and no other.
func TestRegistration(t *testing.T) {
	var names []string
	for _, e := range lab.All() {
		// Plans that are elsewhere, of the service and of a node, have none.
		list, _ := e.Variants(lab.Options{Scale: 1, Seed: 1}, bench.Engine{Name: "sqlite"})
		for _, v := range list {
			if v.Each != nil {
				names = append(names, v.Name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	require.Contains(t, names, "Commit")
	for _, of := range engines.Names() {
		text, err := os.ReadFile(filepath.Join("..", of, "bench_test.go"))
		require.NoError(t, err)
		var found []string
		for _, m := range regexp.MustCompile(`func Benchmark(\w+)\(b \*testing\.B\) *\{ suite\.Run\(b, "(\w+)"\) \}`).FindAllStringSubmatch(string(text), -1) {
			require.Equal(t, m[1], m[2], of)
			found = append(found, m[1])
		}
		slices.Sort(found)
		require.Equal(t, names, found, of)
	}
}

// TestCoreHasOperations: all of the core set can be repeated one operation at a time.
func TestCoreHasOperations(t *testing.T) {
	for _, e := range lab.All() {
		if !e.Core(nil) {
			continue
		}
		list, err := e.Variants(lab.Options{Scale: 1, Seed: 1}, bench.Engine{Name: "sqlite"})
		require.NoError(t, err)
		for _, v := range list {
			require.True(t, v.Each != nil || !e.Core(&v), "%s %s", e.ID, v.Keys)
		}
	}
}

func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	f := RegisterFlags(set)
	require.NoError(t, set.Parse(args))
	return f
}

// TestCoreSet: what is measured does not depend on the pattern of -bench, but on -varve.all.
func TestCoreSet(t *testing.T) {
	each := func(context.Context, func(*bench.Copy, *bench.Operations) error) error { return nil }
	core := lab.Variant{Name: "ReadMix", Each: each, Keys: lab.Keys{{Name: "layout", Value: "arkiv"}, {Name: "mix", Value: "A"}, {Name: "clients", Value: "1"}}}
	other := lab.Variant{Name: "ReadMix", Each: each, Keys: core.Keys.With("clients", "10")}
	found, err := lab.Find([]string{"C1"})
	require.NoError(t, err)
	pattern := flag.Lookup("test.bench").Value
	defer func(old string) { require.NoError(t, pattern.Set(old)) }(pattern.String())
	for _, text := range []string{"", ".", "Benchmark", "ReadMix"} {
		require.NoError(t, pattern.Set(text))
		for all, want := range map[bool]int{false: 1, true: 2} {
			if testing.Short() {
				want = 1
			}
			s := Suite{Engine: bench.Engine{Name: "sqlite"}, Flags: &Flags{all: all}}
			require.Len(t, s.chosen([]lab.Variant{other, core}, "ReadMix", &found[0]), want, "%q, all %v", text, all)
			require.Empty(t, s.chosen([]lab.Variant{other, core}, "Commit", &found[0]))
		}
	}
}

func TestFlags(t *testing.T) {
	o, err := parse(t, "-varve.scale=0.5", "-varve.durability=relaxed", "-varve.layouts=bare,arkiv-3").options()
	require.NoError(t, err)
	require.InDelta(t, 0.5, o.Scale, 0)
	require.Equal(t, driver.Relaxed, o.Durability)
	require.Equal(t, []string{"bare", "arkiv-3"}, o.Layouts)
	_, err = parse(t, "-varve.durability=x").options()
	require.ErrorContains(t, err, "x")
}

// engine has no processes but this one.
type engine struct{ driver.Engine }

func (engine) Stats(context.Context) (driver.Stats, error) { return driver.Stats{}, nil }

// TestPrepareIsFree: the work between two operations is neither in their time nor
// in their costs.
func TestPrepareIsFree(t *testing.T) {
	meter, err := probe.NewMeter(t.Context(), engine{})
	if errors.Is(err, probe.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer meter.Close()
	times := flag.Lookup("test.benchtime").Value
	defer func(old string) { require.NoError(t, times.Set(old)) }(times.String())
	require.NoError(t, times.Set("20x"))
	use := func(d time.Duration) error { // of a processor
		sum := 0
		for start := time.Now(); time.Since(start) < d; sum++ {
		}
		return nil
	}
	var failed error
	testing.Benchmark(func(b *testing.B) {
		_, failed = loop(b, &bench.Operations{
			Prepare: func(int) error { return use(20 * time.Millisecond) },
			Do:      func(context.Context, int) error { return use(2 * time.Millisecond) },
		}, meter)
	})
	require.NoError(t, failed)
	cost, err := meter.Cost()
	require.NoError(t, err)
	require.Less(t, cost.CPU, 20*10*time.Millisecond)
	require.Positive(t, cost.CPU)
}
