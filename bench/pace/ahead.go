package pace

import (
	"context"
	"iter"
)

// Ahead draws the values of a sequence in another goroutine, up to depth of
// them in advance. A closed loop that made its next value between two
// operations would measure the making too. Next returns false after the last
// value, and after an error. Several goroutines may call it. Stop ends the
// drawing and must be called.
func Ahead[T any](seq iter.Seq2[T, error], depth int) (next func() (T, error, bool), stop func()) {
	type drawn struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(context.Background())
	values := make(chan drawn, depth)
	go func() {
		defer close(values)
		for value, err := range seq {
			select {
			case values <- drawn{value, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	next = func() (T, error, bool) {
		d, ok := <-values
		return d.value, d.err, ok
	}
	stop = func() {
		cancel()
		for range values { // until the goroutine has ended
		}
	}
	return next, stop
}
