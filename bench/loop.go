package bench

import "time"

// Loop says how long a closed loop goes on, and is told of pauses that are no
// part of the measurement. *testing.B is one.
type Loop interface {
	Loop() bool // asked before each operation
	StopTimer() // a pause begins
	StartTimer()
}

// Times is a loop of n operations.
func Times(n int) Loop {
	return while(func() bool { n--; return n >= 0 })
}

// For is a loop of a time from its first operation on, pauses included: the last
// operation begins before it has passed.
func For(d time.Duration) Loop {
	var end time.Time
	return while(func() bool {
		if end.IsZero() { // what is made ready before is not measured, and would take of the time
			end = time.Now().Add(d)
			return d > 0
		}
		return time.Now().Before(end)
	})
}

// while is a loop without a timer.
type while func() bool

// Loop implements Loop.
func (w while) Loop() bool { return w() }

// StopTimer implements Loop.
func (while) StopTimer() {}

// StartTimer implements Loop.
func (while) StartTimer() {}

// orOnce returns the loop, or one operation when it is nil.
func orOnce(l Loop) Loop {
	if l == nil {
		return Times(1)
	}
	return l
}
