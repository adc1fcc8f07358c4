package remote

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestDurability: what is promised is what the server says that it keeps.
func TestDurability(t *testing.T) {
	tests := []struct {
		mode string
		want driver.Durability
	}{
		{"extra", driver.Durable}, {"strong", driver.Durable}, {"relaxed", driver.Relaxed}, {"off", driver.Unsafe},
	}
	for _, tc := range tests {
		t.Run(tc.mode, func(t *testing.T) {
			raw := server(t).newURL(t, configuration{"durability_mode": tc.mode})
			for _, level := range []driver.Durability{"", driver.Durable, driver.Relaxed, driver.Unsafe} {
				e, err := openURL(raw, driver.Options{Durability: level})
				if level == tc.want || level == "" && tc.want == driver.Durable {
					require.NoError(t, err)
					list, err := e.Settings(t.Context())
					require.NoError(t, err)
					require.Contains(t, list, driver.Setting{Name: "durability", Value: string(tc.want)})
					require.Equal(t, []driver.Durability{tc.want}, e.Capabilities().Durabilities)
					require.NoError(t, e.Close())
					continue
				}
				require.ErrorIs(t, err, driver.ErrUnsupported)
				require.ErrorContains(t, err, "keeps \""+string(tc.want)+"\"")
			}
		})
	}
}

func TestSettings(t *testing.T) {
	e := mustOpen(t, newURL(t), with("authToken", "secret-token"))
	require.NotEmpty(t, e.Info().Version)
	list, err := e.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, driver.Setting{Name: "server", Value: "http://" + server(t).http}, list[0])
	require.Contains(t, list, driver.Setting{Name: "journal_mode", Value: "wal"})
	require.Contains(t, list, driver.Setting{Name: "synchronous", Value: "2"})
	for _, setting := range list {
		require.NotContains(t, setting.Value, "secret-token")
	}
	stats, err := e.Stats(t.Context())
	require.NoError(t, err)
	require.Positive(t, *stats.DatabaseBytes)
	require.Nil(t, stats.WALBytes)
}
