package latency

import (
	"math/bits"
	"time"

	"github.com/varvedb/varve/bench/result"
)

// Timeline collects operations second by second. It is not safe for concurrent
// use. A second takes about 2 KB: its quantiles are within 1 %, its maximum is
// exact.
type Timeline struct {
	seconds []second
}

type second struct {
	count, errors int64
	max           time.Duration
	octaves       [octaves]*octave // nil where nothing was recorded
}

// A second has its own histogram, smaller than an HDR one: each power of two
// from 1,024 ns on is cut in 64 parts. What is shorter or longer counts in the
// nearest octave.
const (
	parts    = 64
	smallest = 10 // exponent of the first octave
	octaves  = 32 // to 2^42 ns, more than an hour
)

type octave [parts]uint32

// Record adds an operation that ended at a time since the run began.
func (t *Timeline) Record(end, took time.Duration) {
	s := t.at(end)
	s.count++
	s.max = max(s.max, took)
	exponent, part := place(took)
	if s.octaves[exponent] == nil {
		s.octaves[exponent] = new(octave)
	}
	s.octaves[exponent][part]++
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

// place returns the bucket of a latency.
func place(took time.Duration) (exponent, part int) {
	v := uint64(max(took, 1<<smallest))
	top := bits.Len64(v) - 1
	if top >= smallest+octaves {
		return octaves - 1, parts - 1
	}
	return top - smallest, int(v>>(top-6)) & (parts - 1)
}

// middle returns the latency in the middle of a bucket.
func middle(exponent, part int) time.Duration {
	width := time.Duration(1) << (exponent + smallest - 6)
	return time.Duration(parts+part)*width + width/2
}

// Merge adds another timeline of the same run.
func (t *Timeline) Merge(o *Timeline) {
	for i := range o.seconds {
		to, from := t.at(time.Duration(i)*time.Second), &o.seconds[i]
		to.count += from.count
		to.errors += from.errors
		to.max = max(to.max, from.max)
		for e, add := range from.octaves {
			if add == nil {
				continue
			}
			if to.octaves[e] == nil {
				to.octaves[e] = new(octave)
			}
			for p, n := range add {
				to.octaves[e][p] += n
			}
		}
	}
}

// Seconds returns one entry for each second from the beginning of the run to
// the last operation, idle ones too: entry i ends at i+1 seconds. The last one
// is as a rule cut short by the end of the run, which its At tells when the
// length of the run is given; 0 is unknown.
func (t *Timeline) Seconds(length time.Duration) []result.Second {
	list := make([]result.Second, len(t.seconds))
	for i := range t.seconds {
		s := &t.seconds[i]
		list[i] = result.Second{
			At: float64(i + 1), Count: s.count, Errors: s.errors,
			P50: s.quantile(0.50), P99: s.quantile(0.99), Max: s.max,
		}
	}
	if n := len(list); n > 0 && length > 0 {
		list[n-1].At = min(list[n-1].At, length.Seconds())
	}
	return list
}

// quantile returns the latency of the operation at a rank, 0 without any.
func (s *second) quantile(share float64) time.Duration {
	rank := max(int64(share*float64(s.count)+0.5), 1)
	for e, o := range s.octaves {
		if o == nil {
			continue
		}
		for p, n := range o {
			if rank -= int64(n); rank <= 0 {
				return min(middle(e, p), s.max)
			}
		}
	}
	return 0
}
