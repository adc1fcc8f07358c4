package latency

import "time"

// Second is what happened in one second of a run.
type Second struct {
	At     float64 // seconds since the run began, at the end of the interval
	Count  int64   // operations that ended in it
	Max    time.Duration
	Errors int64

	Sampled map[string]float64 // by unit, what is known of engine and system
}

// Timeline collects operations second by second. It is not safe for concurrent
// use.
type Timeline struct{ seconds []Second }

// Record adds an operation that ended at a time since the run began.
func (t *Timeline) Record(end, took time.Duration) {
	s := t.at(end)
	s.Count++
	s.Max = max(s.Max, took)
}

// Fail adds an operation that ended with an error at a time since the run
// began. It has no latency.
func (t *Timeline) Fail(end time.Duration) { t.at(end).Errors++ }

func (t *Timeline) at(end time.Duration) *Second {
	i := int(max(end, 0) / time.Second)
	for len(t.seconds) <= i {
		t.seconds = append(t.seconds, Second{At: float64(len(t.seconds) + 1)})
	}
	return &t.seconds[i]
}

// Seconds returns one entry for each second from the beginning of the run to
// the last operation, idle ones too: entry i ends at i+1 seconds. The last one
// is as a rule cut short by the end of the run, which its At tells when the
// length of the run is given; 0 is unknown.
func (t *Timeline) Seconds(length time.Duration) []Second {
	list := append([]Second{}, t.seconds...)
	if n := len(list); n > 0 && length > 0 {
		list[n-1].At = min(list[n-1].At, length.Seconds())
	}
	return list
}
