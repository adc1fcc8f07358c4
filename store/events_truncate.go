package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// metaEventHorizon is the position of the first event that is not truncated.
const metaEventHorizon = "events.horizon"

// Horizon returns the position of the first event that is not truncated, whether or not it
// is there already.
func (e *Events) Horizon(ctx context.Context) (at uint64, err error) {
	defer wrap(&err, "horizon of the events")
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		at, err = e.horizon(ctx, q)
		return err
	})
	return at, err
}

func (e *Events) horizon(ctx context.Context, q driver.Querier) (uint64, error) {
	recorded, err := e.db.meta.all(ctx, q)
	if err != nil {
		return 0, err
	}
	at, err := parseHorizon(recorded[metaEventHorizon])
	return max(at, 1), err
}

// Truncate removes the data and metadata of the events below a position for good, which is
// most of what they take. Positions, times, types, tags and IDs stay: conditions, and
// repetitions of appends, have the answers that they had. A read that comes to a truncated
// event fails with event.ErrTruncated. The database does not become smaller, but has room again.
//
// It runs in short transactions, while readers and writers go on. After each
// transaction it calls progress, unless that is nil, with the position that it
// has reached. After an interruption, call it again. Archive the events before:
// see [Events.Read] and [Events.Import].
func (e *Events) Truncate(ctx context.Context, before uint64, progress func(at uint64)) error {
	head, err := e.Head(ctx)
	if err == nil && before > head+1 {
		err = fmt.Errorf("%w: the last event is %d", ErrInvalid, head)
	}
	for at := uint64(0); err == nil && at < before; {
		if err = ctx.Err(); err == nil {
			at, err = e.truncateStep(ctx, before)
		}
		if err == nil && progress != nil {
			progress(at)
		}
	}
	if err != nil {
		return fmt.Errorf("truncate events before %d: %w", before, err)
	}
	return nil
}

// truncateStep truncates some events, and returns where the horizon is then.
func (e *Events) truncateStep(ctx context.Context, before uint64) (at uint64, err error) {
	err = e.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error {
		if at, err = e.horizon(ctx, tx); err != nil || at >= before {
			return err
		}
		last, err := e.log.Truncate(ctx, tx, at-1, before)
		if err != nil {
			return err
		}
		at = last + 1
		return e.db.meta.setAll(ctx, tx, map[string]string{
			metaEventFormat: eventFormatNewer, metaEventHorizon: strconv.FormatUint(at, 10),
		})
	})
	return at, err
}

// tellHorizon adds to the error of a read where events are not truncated any more.
func (e *Events) tellHorizon(ctx context.Context, err error) error {
	var gone *event.TruncatedError
	if !errors.As(err, &gone) {
		return err
	}
	if at, e := e.Horizon(ctx); e == nil {
		gone.Before = at
	}
	return err
}
