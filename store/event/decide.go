package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Decision chooses events from the states of projectors.
type Decision struct {
	// Reads are the projectors that the choice depends on. The events are
	// appended only if no event that a projector selects was appended since its
	// read. At least one is needed.
	Reads []Projector

	// Choose returns the events to append, or an error that says why there are
	// none. It must depend on the states alone and have no side effects,
	// because it is called again when they have changed. No events and no error
	// means that there is nothing to do.
	Choose func() ([]Event, error)

	// Attempts is the maximum number of appends. Zero means 16.
	Attempts int
}

// The waits between attempts are random, at first up to firstPause; the bound
// doubles each time, up to lastPause.
const (
	firstWait = time.Millisecond
	lastWait  = 128 * time.Millisecond
)

// Decide reads, lets the decision choose, and appends the chosen events under
// the condition that no event that a projector selects was appended meanwhile.
// If one was, it waits for a short random time, reads the new events, and lets
// the decision choose again. It returns the positions of the events, none when
// it chose none.
//
// It returns an error of Choose unchanged; ErrConflict, with the number of
// attempts, when all attempts conflicted; and the errors of Store.Append. When
// the outcome of an append is unknown, the append is repeated if all its events
// have IDs, by which the store recognises them. Otherwise the error is
// ErrUnknownOutcome, and the events may or may not be stored.
func Decide(ctx context.Context, s Store, d Decision) ([]uint64, error) {
	reads, err := newPass(d.Reads)
	if err != nil {
		return nil, fmt.Errorf("decide: %w", err)
	}
	attempts := cmp.Or(d.Attempts, 16)
	for n := 1; ; n++ {
		cond, err := reads.run(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("decide: %w", err)
		}
		events, err := d.Choose()
		if err != nil || len(events) == 0 {
			return nil, err
		}
		positions, err := appendKnown(ctx, s, events, cond)
		if err == nil {
			return positions, nil
		}
		if n >= attempts || !errors.Is(err, driver.ErrConflict) {
			return nil, fmt.Errorf("decide: attempt %d of %d: %w", n, attempts, err)
		}
		if err := pause(ctx, n); err != nil {
			return nil, fmt.Errorf("decide: after %d attempts of %d: %w", n, attempts, err)
		}
	}
}

// repeats is the maximum number of repetitions of an append with an unknown
// outcome.
const repeats = 8

// appendKnown appends until the outcome is known, if the events can be
// repeated.
func appendKnown(ctx context.Context, s Store, events []Event, cond *Condition) ([]uint64, error) {
	positions, err := s.Append(ctx, events, cond)
	if !errors.Is(err, driver.ErrUnknownOutcome) || slices.ContainsFunc(events, func(e Event) bool { return e.ID.IsZero() }) {
		return positions, err
	}
	for n := 1; n <= repeats && pause(ctx, n) == nil; n++ {
		positions, again := s.Append(ctx, events, cond)
		// A conflict means that the first append was not stored: otherwise the
		// store would have recognised the IDs of the repetition.
		if conflict := new(ConflictError); again == nil || errors.As(again, &conflict) {
			return positions, again
		}
		if !errors.Is(again, driver.ErrUnknownOutcome) && !errors.Is(again, driver.ErrUnavailable) && !errors.Is(again, driver.ErrConflict) {
			return nil, fmt.Errorf("%w; repeated: %w", err, again)
		}
	}
	return nil, err
}

// pause waits after the n-th attempt, or until ctx is done.
func pause(ctx context.Context, n int) error {
	longest := min(firstWait<<min(n-1, 16), lastWait)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
