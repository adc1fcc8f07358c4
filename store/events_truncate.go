package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// metaEventHorizon records the position of the first event that is not
// truncated.
const metaEventHorizon = "events.horizon"

// Horizon returns the position of the first event that is not truncated, even
// if that event does not exist yet.
func (e *Events) Horizon(ctx context.Context) (at uint64, err error) {
	defer wrap(&err, "horizon of the events")
	return inView(ctx, e.db, e.horizon)
}

func (e *Events) horizon(ctx context.Context, q driver.Querier) (uint64, error) {
	at, err := e.db.meta.number(ctx, q, metaEventHorizon)
	return max(at, 1), err
}

// Truncate permanently removes the data and metadata of the events below a
// position, which is most of their size. Positions, times, types, tags and IDs
// stay, so that conditions and repeated appends have the same outcome as
// before. A read that reaches a truncated event fails with event.ErrTruncated.
// The database file does not shrink, but its free space is reused.
//
// It runs in short transactions, while readers and writers continue. After each
// transaction it calls progress, unless that is nil, with the position reached.
// After an interruption, call it again. Archive the events before: see
// [Events.Read] and [Events.Import].
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

// truncateStep truncates some events, and returns the new horizon.
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

// tellHorizon adds the position of the first readable event to a read's error.
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
