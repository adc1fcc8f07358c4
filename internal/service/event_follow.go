package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// Subscription is a client's subscription to events.
type Subscription struct {
	Protocol string // that it comes by: "rest" or "grpc"
	Query    event.Query
	From     uint64 // the first position

	Ending context.Context // done when the server goes down
	Idle   time.Duration   // after this time without events an empty batch is sent; zero: never
	Hold   *quota.Hold     // of large events; nil does not count
}

// Follow passes the events of a subscription to send, in batches and as soon as
// they are available, and counts its client as a subscriber. While a batch is
// being sent, no further event and no view of the store is held for the client,
// so a stalled client costs one batch. A large event is a separate batch, and
// its memory is reserved. Follow ends with the error of the subscription or of
// send, or with ErrClosing when sub.Ending is closed. Send must not retain the
// events.
func (e Events) Follow(ctx context.Context, sub Subscription, send func([]event.Sequenced) error) (err error) {
	// Count the client as a subscriber.
	f := &subscriber{protocol: sub.Protocol, query: sub.Query}
	f.has.Store(max(sub.From, 1) - 1)
	list := &e.service.subscribers
	list.Store(f, nil)
	defer list.Delete(f)

	// End with the request, or when the server goes down.
	request, sent := ctx, 0
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(sub.Ending, func() { end(ErrClosing) })()
	defer sub.Hold.Release()
	defer func() {
		accesslog.Add(request, slog.Int("events", sent))
		if errors.Is(context.Cause(ctx), ErrClosing) {
			err = ErrClosing
		}
	}()

	stored, err := e.open()
	if err != nil {
		return err
	}
	var b batch
	for from := sub.From; ; {
		b.reset()
		// Reserve memory for large events before reading them, because a
		// hundred subscribers could otherwise each read one before the first is
		// counted. A subscription to small events never waits.
		if b.usual == 0 || b.usual > batchBytes {
			if err := sub.Hold.Take(ctx, readBytes); err != nil {
				return err
			}
		}

		// Read a batch, and reserve exactly its memory.
		for ev, err := range e.unsealed(stored.Read(ctx, sub.Query, &event.ReadOptions{From: from, Limit: b.fits()})) {
			if err != nil && len(b.events) == 0 {
				return err
			}
			if err != nil || !b.add(&ev) {
				break // the next read will return the error again
			}
		}
		if wants := b.memory(); sub.Hold.Try(wants) {
			sub.Hold.Shrink(wants)
		} else {
			b.reset() // it is read again when there is room for it
			sub.Hold.Release()
			if err := sub.Hold.Take(ctx, wants); err != nil {
				return err
			}
			continue
		}

		// Wait for an event. After the idle time, send an empty batch.
		if len(b.events) == 0 {
			found, err := await(ctx, stored, sub.Query, from, sub.Idle)
			if err == nil {
				from = found
				continue
			}
			if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
		}

		// Send the batch.
		sub.Hold.Await()
		if err := send(b.events); err != nil {
			return err
		}
		sub.Hold.Release()
		if n := len(b.events); n > 0 {
			last := b.events[n-1].Position
			f.has.Store(last)
			sent, from = sent+n, last+1
		}
	}
}

// await waits for an event from a position on, and returns its position; unless
// idle is zero, it waits at most that long.
func await(ctx context.Context, events *store.Events, q event.Query, from uint64, idle time.Duration) (found uint64, err error) {
	if idle > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, idle)
		defer cancel()
	}
	events.Subscribe(ctx, q, from)(func(ev event.Sequenced, failed error) bool {
		found, err = ev.Position, failed
		return false
	})
	return found, err
}
