package crashtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestSyncs is the contract of a commit: one sync where it is durable, and none
// elsewhere. Engines with server processes may sync more, and so may the
// put-off work of a layout.
func TestSyncs(t *testing.T) {
	if reason := CannotTrace(); reason != "" {
		t.Skip(reason)
	}
	for _, c := range []struct {
		engine, layout string
		level          driver.Durability
		syncs          int
		exact          bool
	}{
		{"sqlite", "arkiv", driver.Durable, countedCommits, true},
		{"sqlite", "arkiv", driver.Relaxed, 0, true},
		{"sqlite", "arkiv", driver.Unsafe, 0, true},
		{"sqlite", "compact", driver.Durable, countedCommits, false},
		{"sqlite", EventsLayout, driver.Durable, countedCommits, true},
		{"sqlite", EventsLayout, driver.Relaxed, 0, true},
		{"duckdb", "arkiv", driver.Durable, countedCommits, true},
		{"duckdb", EventsLayout, driver.Durable, countedCommits, true},
		{"postgres", EventsLayout, driver.Durable, countedCommits, false},
	} {
		t.Run(c.engine+"/"+c.layout+"/"+string(c.level), func(t *testing.T) {
			if testing.Short() && c.engine != "sqlite" {
				t.Skip("tracing an engine that starts slowly; without -short it is done")
			}
			n, err := CountSyncs(t.Context(), Cell{Engine: c.engine, Layout: c.layout, Dir: t.TempDir()}, c.level)
			if err != nil && strings.Contains(err.Error(), driver.ErrUnsupported.Error()) {
				t.Skip(err)
			}
			require.NoError(t, err)
			if c.exact {
				require.Equal(t, c.syncs, n.Total(), "%v", n)
			} else {
				require.GreaterOrEqual(t, n.Total(), c.syncs, "%v", n)
			}
		})
	}
}

func TestParseTrace(t *testing.T) {
	n, err := parseTrace([]byte(`1 fsync(3) = 0
1 newfstatat(AT_FDCWD, "/varve-mark-begin", 0xc000, 0) = -1 ENOENT
1 fsync(7) = 0
2  fdatasync(8 <unfinished ...>
1 fsync(7) = 0
2  <... fdatasync resumed>) = 0
1 newfstatat(AT_FDCWD, "/fsync(", 0xc000, 0) = -1 ENOENT
1 newfstatat(AT_FDCWD, "/varve-mark-end", 0xc000, 0) = -1 ENOENT
1 fsync(7) = 0
`))
	require.NoError(t, err)
	require.Equal(t, SyncCount{"fsync": 2, "fdatasync": 1}, n)
	_, err = parseTrace([]byte("1 fsync(7) = 0\n"))
	require.ErrorContains(t, err, "no marks")
}
