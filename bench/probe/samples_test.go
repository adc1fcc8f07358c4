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

// at makes the sample of a time at which all counters have grown evenly: n by
// the 100 ms.
func at(ms int64) Sample {
	n := ms / 100
	took := time.Duration(n) * time.Millisecond
	used := time.Duration(n) * 50 * time.Millisecond
	return Sample{
		At: began.Add(time.Duration(ms) * time.Millisecond),
		Stats: driver.Stats{
			WALBytes: new(n), DatabaseBytes: new(1000 + n), Checkpoints: new(n / 10),
			CheckpointTime: &took, CheckpointStall: &took,
		},
		RSS: new(5 * n), CPU: &used, Read: new(10 * n), Written: new(100 * n),
	}
}

func TestFill(t *testing.T) {
	samples := Samples{List: []Sample{at(-900), at(-400), at(100), at(600), at(1000), at(1100), at(3500), at(4100)}}
	samples.List[3].Pages = &Pages{Resident: 1, Total: 4}
	pace := []latency.Second{{At: 1, Count: 7}, {At: 2, Count: 8}, {At: 3, Count: 9}, {At: 3.6, Count: 5}}
	got := samples.Fill(pace, began)
	second := func(at float64, count int64, last, tenths, checkpoints float64) latency.Second {
		return latency.Second{At: at, Count: count, Sampled: map[string]float64{
			"wal-MB": last / 1e6, "db-MB": (1000 + last) / 1e6, "rss-MB": 5 * last / 1e6, "cores": 0.5,
			"disk-read-MB": 10 * tenths / 1e6, "disk-write-MB": 100 * tenths / 1e6, "checkpoints": checkpoints, "stall-ms": tenths,
		}}
	}
	want := []latency.Second{
		second(1, 7, 10, 14, 1), // from -400 to 1000
		second(2, 8, 11, 1, 0),  // to 1100
		{At: 3, Count: 9},       // without a sample: in the next one
		second(3.6, 5, 35, 24, 2),
	}
	want[0].Sampled["resident"] = 0.25
	require.Empty(t, cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })))
}

// Without a sample before the run the first one counts as its beginning.
func TestFillFromFirst(t *testing.T) {
	samples := Samples{List: []Sample{at(200), at(700), at(2200)}}
	got := samples.Fill(make([]latency.Second, 3), began)
	require.InEpsilon(t, 50e-6, got[0].Sampled["disk-read-MB"], 1e-9)
	require.Empty(t, got[1].Sampled)
	require.InEpsilon(t, 150e-6, got[2].Sampled["disk-read-MB"], 1e-9)
	require.Empty(t, new(Samples).Fill(nil, began))
}

// An engine that tells nothing leaves figures unknown, and one that was
// restarted counts from 0.
func TestFillUnknown(t *testing.T) {
	samples := Samples{List: []Sample{at(0), at(900), at(1900)}}
	samples.List[1].Stats, samples.List[1].CPU = driver.Stats{}, nil
	got := samples.Fill(make([]latency.Second, 2), began)
	for _, unit := range []string{"wal-MB", "checkpoints", "cores"} {
		require.NotContains(t, got[0].Sampled, unit)
	}
	require.InEpsilon(t, 900e-6, got[0].Sampled["disk-write-MB"], 1e-9)

	samples = Samples{List: []Sample{at(0), at(5000), at(6000)}}
	samples.List[2].Stats = at(1000).Stats
	got = samples.Fill(make([]latency.Second, 6), began)
	require.InEpsilon(t, 1, got[5].Sampled["checkpoints"], 1e-9)
}
