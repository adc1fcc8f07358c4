package gobench

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/coreset"
)

// TestCoreSet: -bench=. is the core set, any other pattern all that it matches.
func TestCoreSet(t *testing.T) {
	pattern := flag.Lookup("test.bench").Value
	defer func(old string) { require.NoError(t, pattern.Set(old)) }(pattern.String())
	f := parseFlags(t)
	for _, c := range []struct {
		pattern string
		skipped bool
		layouts []string
		events  int // data sets
	}{
		{".", true, []string{"arkiv", "compact"}, 1},
		{"Benchmark", false, []string{"arkiv", "compact", "simple"}, 2},
		{"Commit", false, []string{"arkiv", "compact", "simple"}, 2},
	} {
		require.NoError(t, pattern.Set(c.pattern))
		skipped := true
		testing.Benchmark(func(b *testing.B) {
			coreset.Skip(b)
			skipped = false
		})
		require.Equal(t, c.skipped, skipped, c.pattern)
		if testing.Short() {
			continue // the least of everything
		}
		require.Equal(t, c.layouts, compared("simple"), c.pattern)
		data, err := f.eventData()
		require.NoError(t, err)
		require.Len(t, data, c.events, c.pattern)
	}
}
