package latency

import (
	"math/bits"
	"time"
)

// Second is what happened in one second of a run.
type Second struct {
	At     float64 // seconds since the run began, at the end of the interval
	Count  int64   // operations that ended in it
	P50    time.Duration
	Max    time.Duration
	Errors int64

	Sampled map[string]float64 // by unit, what is known of engine and system
}

// Timeline collects operations second by second. It is not safe for concurrent
// use. A second takes some 4 KB: its median is within 1 %, its maximum is
// exact.
type Timeline struct {
	seconds []second
}

type second struct {
	count, errors int64
	max           time.Duration
	buckets       []uint32 // up to the highest in which something was recorded
}

// A second has its own histogram, smaller than an HDR one: each power of two
// from 1,024 ns on is cut in 64 parts. What is shorter counts in the first.
const (
	parts    = 64
	smallest = 10 // exponent of the first power
)

// Record adds an operation that ended at a time since the run began.
func (t *Timeline) Record(end, took time.Duration) {
	s := t.at(end)
	s.count++
	s.max = max(s.max, took)
	b := bucket(took)
	s.buckets = append(s.buckets, make([]uint32, max(b+1-len(s.buckets), 0))...)
	s.buckets[b]++
}

// Fail adds an operation that ended with an error at a time since the run
// began. It has no latency.
func (t *Timeline) Fail(end time.Duration) { t.at(end).errors++ }

func (t *Timeline) at(end time.Duration) *second {
	i := int(max(end, 0) / time.Second)
	for len(t.seconds) <= i {
		t.seconds = append(t.seconds, second{})
	}
	return &t.seconds[i]
}

func bucket(took time.Duration) int {
	v := uint64(max(took, 1<<smallest))
	top := bits.Len64(v) - 1
	return (top-smallest)*parts + int(v>>(top-6))&(parts-1)
}

// middle returns the latency in the middle of a bucket.
func middle(bucket int) time.Duration {
	width := time.Duration(1) << (bucket/parts + smallest - 6)
	return time.Duration(parts+bucket%parts)*width + width/2
}

// Seconds returns one entry for each second from the beginning of the run to
// the last operation, idle ones too: entry i ends at i+1 seconds. The last one
// is as a rule cut short by the end of the run, which its At tells when the
// length of the run is given; 0 is unknown.
func (t *Timeline) Seconds(length time.Duration) []Second {
	list := make([]Second, len(t.seconds))
	for i := range t.seconds {
		s := &t.seconds[i]
		list[i] = Second{
			At: float64(i + 1), Count: s.count, Errors: s.errors,
			P50: s.median(), Max: s.max,
		}
	}
	if n := len(list); n > 0 && length > 0 {
		list[n-1].At = min(list[n-1].At, length.Seconds())
	}
	return list
}

// median returns the latency of the operation in the middle, 0 without any.
func (s *second) median() time.Duration {
	rank := max((s.count+1)/2, 1)
	for b, n := range s.buckets {
		if rank -= int64(n); rank <= 0 {
			return min(middle(b), s.max)
		}
	}
	return 0
}
