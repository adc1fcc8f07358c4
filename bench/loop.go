package bench

import "time"

// Loop says how long a closed loop goes on. It is asked before each operation.
type Loop func() bool

// Times is a loop of n operations.
func Times(n int) Loop {
	return func() bool { n--; return n >= 0 }
}

// For is a loop of a time from its first operation on: the last operation begins before it
// has passed.
func For(d time.Duration) Loop {
	var end time.Time
	return func() bool {
		if end.IsZero() { // what is made ready before is not measured, and would take of the time
			end = time.Now().Add(d)
			return d > 0
		}
		return time.Now().Before(end)
	}
}

// orOnce returns the loop, or one operation when it is nil.
func orOnce(l Loop) Loop {
	if l == nil {
		return Times(1)
	}
	return l
}
