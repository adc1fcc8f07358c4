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

// Decision chooses events by the states of projectors.
type Decision struct {
	// Reads are the projectors that the choice depends on: no event that one of
	// them selects is appended between its read and the decision's events. At
	// least one is needed.
	Reads []Projector

	// Choose returns the events to append, or why there are none. It looks at the states
	// alone and does nothing else, for it is called again when they have changed. No
	// events and no error means that there is nothing to do.
	Choose func() ([]Event, error)

	// Attempts is how often to append before giving up. Zero means 16.
	Attempts int
}

// The waits between attempts: random ones up to the first, then up to twice as much each time, up to the last.
const (
	firstWait = time.Millisecond
	lastWait  = 128 * time.Millisecond
)

// Decide reads, lets the decision choose, and appends the chosen events under
// the condition that no event that a projector selects was appended meanwhile.
// When one was, it reads the new events, after a short random wait, and lets
// the decision choose again. It returns the positions of the events, none when
// it chose none.
//
// It fails with the error of Choose as it is; with ErrConflict when all attempts were
// overtaken, telling how many; and as Store.Append does. When the outcome of an append is
// unknown, it is repeated if all its events have IDs, which the store knows again;
// otherwise the error is ErrUnknownOutcome, and the events may be stored or not.
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

// repeats is how often an append of unknown outcome is repeated.
const repeats = 8

// appendKnown appends until the outcome is known, if the events can be repeated.
func appendKnown(ctx context.Context, s Store, events []Event, cond *Condition) ([]uint64, error) {
	positions, err := s.Append(ctx, events, cond)
	if !errors.Is(err, driver.ErrUnknownOutcome) || slices.ContainsFunc(events, func(e Event) bool { return e.ID.IsZero() }) {
		return positions, err
	}
	for n := 1; n <= repeats && pause(ctx, n) == nil; n++ {
		positions, again := s.Append(ctx, events, cond)
		// A verdict by the condition says that the first one was not stored: its
		// repetition would have been known by the IDs.
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
