package gobench

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/driver"
)

func parseFlags(t *testing.T, args ...string) *Flags {
	t.Helper()
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	f := RegisterFlags(set)
	require.NoError(t, set.Parse(args))
	return f
}

func TestFlagDefaults(t *testing.T) {
	f := parseFlags(t)
	profiles, err := f.chooseProfiles()
	require.NoError(t, err)
	require.Equal(t, []bench.Profile{bench.Typical}, profiles)
	require.Equal(t, []string{"arkiv", "simple"}, f.chooseLayouts("arkiv", "simple"))
	opts, err := f.options()
	require.NoError(t, err)
	require.Equal(t, driver.Durable, opts.Durability)
	s := Suite{Engine: bench.Engine{Name: "sqlite"}, Flags: f}
	require.Equal(t, "engine=sqlite/layout=arkiv/profile=typical/durability=durable", s.Name(s.Dataset("arkiv", bench.Typical)))
}

func TestFlags(t *testing.T) {
	f := parseFlags(t, "-varve.entities=5", "-varve.durability=relaxed", "-varve.layouts=bare,arkiv-3", "-varve.profiles=large,minimal-9B")
	require.Equal(t, 5, f.size())
	require.Equal(t, []string{"bare", "arkiv-3"}, f.chooseLayouts("arkiv"))
	profiles, err := f.chooseProfiles()
	require.NoError(t, err)
	require.Equal(t, []bench.Profile{bench.Large, bench.Minimal.WithPayload(9)}, profiles)
}

func TestWrongFlags(t *testing.T) {
	f := parseFlags(t, "-varve.durability=x", "-varve.profiles=x")
	_, err := f.options()
	require.ErrorContains(t, err, "-varve.durability")
	_, err = f.chooseProfiles()
	require.ErrorContains(t, err, "-varve.profiles")
}
