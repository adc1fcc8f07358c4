package probe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/store/driver"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// at makes the sample of a time at which all counters have grown evenly: n by the 100 ms.
func at(ms int64) Sample {
	n := ms / 100
	return Sample{
		At:    began.Add(time.Duration(ms) * time.Millisecond),
		Stats: driver.Stats{WALBytes: new(n * 1e6), Checkpoints: new(n / 10)}, Read: new(10 * n * 1e6),
	}
}

// A second has what its last sample tells, and what came since the last one before; a counter that
// fell began anew, and what an engine does not tell is not known.
func TestFill(t *testing.T) {
	fill := func(samples ...Sample) []latency.Second {
		seconds := make([]latency.Second, 4)
		(&Samples{List: samples}).Fill(seconds, began)
		return seconds
	}
	second := func(wal, read, checkpoints float64) latency.Second {
		return latency.Second{Sampled: map[string]float64{"wal-MB": wal, "disk-read-MB": read, "checkpoints": checkpoints}}
	}
	require.Empty(t, cmp.Diff([]latency.Second{
		second(10, 140, 1), // from -400 to 1000
		second(11, 10, 0),  // to 1100
		{},                 // without a sample: in the next one
		second(35, 240, 2),
	}, fill(at(-900), at(-400), at(100), at(600), at(1000), at(1100), at(3500), at(4100))))
	// Without a sample before the run the first one counts as its beginning.
	require.Empty(t, cmp.Diff([]latency.Second{second(7, 50, 0), {}, second(22, 150, 2), {}}, fill(at(200), at(700), at(2200))))

	silent, restarted := at(900), at(3000)
	silent.Stats, restarted.Stats = driver.Stats{}, at(1000).Stats
	got := fill(at(0), silent, at(2000), restarted)
	require.Equal(t, map[string]float64{"disk-read-MB": 90}, got[0].Sampled)
	require.Equal(t, map[string]float64{"disk-read-MB": 110, "wal-MB": 20}, got[1].Sampled)
	require.InDelta(t, 1, got[2].Sampled["checkpoints"], 0)
}
