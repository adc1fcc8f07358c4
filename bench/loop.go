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
func Times(n int) Loop { return &times{left: n} }

type times struct {
	untimed
	left int
}

func (t *times) Loop() bool {
	t.left--
	return t.left >= 0
}

// For is a loop of a time, pauses included: the last operation begins before
// it has passed.
func For(d time.Duration) Loop { return &during{end: time.Now().Add(d)} }

type during struct {
	untimed
	end time.Time
}

func (d *during) Loop() bool { return time.Now().Before(d.end) }

// untimed has no timer to stop.
type untimed struct{}

func (untimed) StopTimer()  {}
func (untimed) StartTimer() {}

// toTheEnd goes on until the workload's input ends, with the timer of another
// loop.
type toTheEnd struct{ timer Loop }

func (toTheEnd) Loop() bool    { return true }
func (l toTheEnd) StopTimer()  { l.timer.StopTimer() }
func (l toTheEnd) StartTimer() { l.timer.StartTimer() }

// orOnce returns the loop, or one operation when it is nil.
func orOnce(l Loop) Loop {
	if l == nil {
		return Times(1)
	}
	return l
}
