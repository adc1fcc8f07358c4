package probe

import (
	"cmp"
	"math"
	"time"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/store/driver"
)

// Sample is what a sampler saw at one time. Nil fields are not known.
type Sample struct {
	At    time.Time
	Stats driver.Stats

	RSS     *int64         // bytes in memory, shared ones once
	CPU     *time.Duration // time on cores since the first sample
	Read    *int64         // bytes from the disk since then
	Written *int64         // bytes to the disk since then
	Pages   *Pages         // of Config.Dir
}

// Samples are what a sampler saw, in order.
type Samples struct {
	List []Sample
	Err  error // the first one because of which a sample lacks something
}

func (s *Samples) add(sample Sample, err error) {
	s.List = append(s.List, sample)
	s.Err = cmp.Or(s.Err, err)
}

// Fill puts samples into the timeline of a run that began at a time, whose
// entry i is second i, as pace.Outcome.Seconds returns it, and returns it.
//
// Of a second, the last sample in it tells the sizes. What is of an interval,
// such as CPU, is from the last sample before to that one, so it is off by up to
// Config.Interval at both ends. Nothing is lost: what a second without a sample
// used is in the next one.
func (s *Samples) Fill(timeline []latency.Second, started time.Time) []latency.Second {
	before := 0
	for i := range s.List {
		sample := &s.List[i]
		at := second(sample.At.Sub(started))
		if at >= len(timeline) {
			break
		}
		if at >= 0 {
			sizes(&timeline[at], sample)
		}
		if i+1 < len(s.List) && second(s.List[i+1].At.Sub(started)) == at {
			continue
		}
		if at >= 0 && before < i {
			changes(&timeline[at], &s.List[before], sample)
		}
		before = i
	}
	return timeline
}

// second returns the number of the second that a time is in, which has its end
// and not its beginning; below 0 for what is not later than the start.
func second(since time.Duration) int { return int(math.Ceil(since.Seconds())) - 1 }

// sizes sets what is known at a sample.
func sizes(to *latency.Second, s *Sample) {
	put(to, s.Stats.WALBytes, 1e6, "wal-MB")
	put(to, s.Stats.DatabaseBytes, 1e6, "db-MB")
	put(to, s.RSS, 1e6, "rss-MB") // of the engine's processes
	if s.Pages != nil {
		share := s.Pages.Share()
		put(to, &share, 1, "resident") // part of the files in the page cache, 0…1
	}
}

// changes sets what happened between two samples.
func changes(to *latency.Second, a, b *Sample) {
	put(to, grown(a.Read, b.Read), 1e6, "disk-read-MB")
	put(to, grown(a.Written, b.Written), 1e6, "disk-write-MB")
	put(to, grown(a.Stats.Checkpoints, b.Stats.Checkpoints), 1, "checkpoints") // that ended
	put(to, grown(a.Stats.CheckpointStall, b.Stats.CheckpointStall), 1e6, "stall-ms")
	if b.At.After(a.At) {
		put(to, grown(a.CPU, b.CPU), float64(b.At.Sub(a.At)), "cores") // in use by the engine's processes
	}
}

// put sets a figure, if it is known, in a unit of so many.
func put[T ~int64 | ~float64](to *latency.Second, v *T, in float64, unit string) {
	if v == nil {
		return
	}
	if to.Sampled == nil {
		to.Sampled = map[string]float64{}
	}
	to.Sampled[unit] = float64(*v) / in
}

// grown returns by how much a counter has grown; nil when that is not known. A
// counter that fell began anew, as one of a restarted engine.
func grown[T ~int64](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	by := *b - *a
	if by < 0 {
		by = *b
	}
	return &by
}
