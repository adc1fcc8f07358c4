package sqlitego_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/store/driver"
)

func TestMain(m *testing.M) {
	if code, asked := crashtest.WorkerIfAsked(); asked {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestCrash kills a few workers, cuts the power and fills the disk; varve torture does
// so for long.
func TestCrash(t *testing.T) {
	report := &crashtest.Report{}
	require.NoError(t, crashtest.Torture(t.Context(), crashtest.Options{
		Trials: []crashtest.Trial{
			&crashtest.Crash{Worker: crashtest.Reexec},
			&crashtest.Power{Worker: crashtest.Reexec, Level: driver.Durable},
			&crashtest.Full{Worker: crashtest.Reexec},
		},
		Engines: []string{"sqlitego"}, Layouts: []string{"arkiv", "compact", crashtest.EventsLayout},
		Kills: 2, Turn: 2, Seed: 1, Dir: t.TempDir(),
	}, report))
	require.Zero(t, report.Broken(), "%+v", report.Violations)
	require.NotEmpty(t, report.Rows)
}

// TestSyncs: a durable commit is synced once, another one not at all.
func TestSyncs(t *testing.T) {
	if reason := (&crashtest.Syncs{Worker: crashtest.Reexec}).Skip(crashtest.Cell{}); reason != "" {
		t.Skip(reason)
	}
	count := func(level driver.Durability) crashtest.SyncCount {
		n, err := crashtest.CountSyncs(t.Context(), crashtest.Reexec, crashtest.Cell{Engine: "sqlitego", Layout: "arkiv", Dir: t.TempDir()}, level, 1)
		require.NoError(t, err)
		return n
	}
	durable := count(driver.Durable)
	require.NotZero(t, durable["fsync"], "%v", durable)
	require.Equal(t, durable["fsync"], durable.Total(), "the settings say which call it is")
	require.Empty(t, count(driver.Relaxed))
}
