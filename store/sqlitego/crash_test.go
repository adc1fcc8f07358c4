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

// TestCrash kills a few workers, cuts the power and fills the disk; varve torture does so for long.
func TestCrash(t *testing.T) {
	report, err := crashtest.Torture(t.Context(), crashtest.Options{
		Trials:  []crashtest.Trial{crashtest.Crash(driver.Durable), crashtest.Power(driver.Durable), crashtest.Full()},
		Engines: []string{"sqlitego"}, Layouts: []string{"arkiv", "compact", crashtest.EventsLayout},
		Kills: 2, Seed: 1, Dir: t.TempDir(),
	})
	require.NoError(t, err)
	require.Zero(t, report.Broken(), "%+v", report)
	require.NotEmpty(t, report.Rows)
}

// TestSyncs: a durable commit is synced once, another one not at all.
func TestSyncs(t *testing.T) {
	if reason := crashtest.CannotTrace(); reason != "" {
		t.Skip(reason)
	}
	count := func(level driver.Durability) crashtest.SyncCount {
		n, err := crashtest.CountSyncs(t.Context(), crashtest.Cell{Engine: "sqlitego", Layout: "arkiv", Dir: t.TempDir()}, level)
		require.NoError(t, err)
		return n
	}
	durable := count(driver.Durable)
	require.NotZero(t, durable["fsync"], "%v", durable)
	require.Equal(t, durable["fsync"], durable.Total(), "the settings say which call it is")
	require.Empty(t, count(driver.Relaxed))
}
