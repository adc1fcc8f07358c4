package service

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestStatistics: bytes and counts are told as they are, and times in seconds. A
// statistic that an engine does not have is left out.
func TestStatistics(t *testing.T) {
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	told := func(s *driver.Stats) map[string]float64 {
		values := map[string]float64{}
		for _, statistic := range statistics {
			if v := statistic.of(s); v != nil {
				values[name.FindStringSubmatch(statistic.desc.String())[1]] = *v
			}
		}
		return values
	}
	require.Empty(t, told(&driver.Stats{}))
	require.Equal(t, map[string]float64{
		"varve_database_bytes": 4096, "varve_wal_bytes": 100, "varve_replica_lag_seconds": 1.5,
		"varve_checkpoints_total": 3, "varve_checkpoint_seconds_total": 2, "varve_checkpoint_stall_seconds_total": 0.25,
	}, told(&driver.Stats{
		DatabaseBytes: new(int64(4096)), WALBytes: new(int64(100)), ReplicaLag: new(1500 * time.Millisecond),
		Checkpoints: new(int64(3)), CheckpointTime: new(2 * time.Second), CheckpointStall: new(250 * time.Millisecond),
	}))
}
