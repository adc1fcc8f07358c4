package libsql

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestSettings(t *testing.T) {
	tests := []struct {
		name string
		opts driver.Options
		want map[string]string
	}{
		{
			name: "defaults",
			want: map[string]string{
				"journal_mode": "wal", "synchronous": "2", "page_size": "4096", "wal_autocheckpoint": "0",
				"cache_size": strconv.Itoa(-driver.DefaultMemory / 2 / 1024), "mmap_size": "0", "busy_timeout": "5000",
				"temp_store": "1", "auto_vacuum": "0", "durability": "durable", "checkpoint": "background", "sync_call": "fsync",
			},
		},
		{
			name: "relaxed, inline, pages of 8 KiB",
			opts: driver.Options{Durability: driver.Relaxed, Checkpoint: driver.Inline, WALFrames: 77, Memory: 16 << 20,
				LockTimeout: time.Second, Params: map[string]string{"page_size": "8192", "mmap": "65536"}},
			want: map[string]string{
				"journal_mode": "wal", "synchronous": "1", "page_size": "8192", "wal_autocheckpoint": "77",
				"cache_size": "-8192", "mmap_size": "65536", "busy_timeout": "1000", "durability": "relaxed", "checkpoint": "inline",
			},
		},
		{
			name: "unsafe, manual",
			opts: driver.Options{Durability: driver.Unsafe, Checkpoint: driver.Manual},
			want: map[string]string{"journal_mode": "wal", "synchronous": "0", "wal_autocheckpoint": "0", "checkpoint": "manual"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			list, err := mustOpen(t, newPath(t), tc.opts).Settings(context.Background())
			require.NoError(t, err)
			got := map[string]string{}
			for _, s := range list {
				got[s.Name] = s.Value
			}
			for name, value := range tc.want {
				require.Equal(t, value, got[name], name)
			}
		})
	}
}

// A pragma that answers with a row cannot go through Exec of the library; it
// must through the engine's.
func TestPragmaByExec(t *testing.T) {
	write(t, mustOpen(t, newPath(t), driver.Options{}), func(tx driver.Tx) {
		require.Zero(t, mustExec(t, tx, "PRAGMA max_page_count = 1234"))
		require.Equal(t, []int64{1234}, column[int64](t, tx, "PRAGMA max_page_count"))
		_, err := tx.Exec(context.Background(), "PRAGMA wal_checkpoint")
		require.ErrorIs(t, err, driver.ErrLocked, "an error after the first row is not lost")
	})
}
