package service

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// Events is the event store of a service as its clients see it: store.Events,
// with sealed events when the service has keys. Its methods fail as
// store.Events does, and with ErrClosing and ErrNoEvents; appends also with
// ErrReadOnly, and reads as seal.Keyring.Open does.
type Events struct{ service *Service }

var _ event.Checkpointer = Events{}

// Events returns the event store of the service.
func (s *Service) Events() Events { return Events{s} }

// open returns the event store, or an error when there is none or the service
// is closing.
func (e Events) open() (*store.Events, error) {
	s := e.service
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	switch {
	case closed:
		return nil, ErrClosing
	case s.events == nil:
		return nil, ErrNoEvents
	}
	return s.events, nil
}

// Head implements event.Store.
func (e Events) Head(ctx context.Context) (uint64, error) {
	events, err := e.open()
	if err != nil {
		return 0, fmt.Errorf("head of the events: %w", err)
	}
	return events.Head(ctx)
}

// Read implements event.Store.
func (e Events) Read(ctx context.Context, q event.Query, opts *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	events, err := e.open()
	if err != nil {
		return failed(fmt.Errorf("read events: %w", err))
	}
	return e.opened(ctx, events.Read(ctx, q, opts))
}

// Subscribe implements event.Store.
func (e Events) Subscribe(ctx context.Context, q event.Query, from uint64) iter.Seq2[event.Sequenced, error] {
	events, err := e.open()
	if err != nil {
		return failed(fmt.Errorf("subscribe: %w", err))
	}
	return e.opened(ctx, events.Subscribe(ctx, q, from))
}

// failed returns a sequence that only yields an error.
func failed(err error) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) { yield(event.Sequenced{}, err) }
}

// opened decrypts the events of a sequence, and counts their bytes for the log.
func (e Events) opened(ctx context.Context, list iter.Seq2[event.Sequenced, error]) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		n := 0
		defer func() { accesslog.Add(ctx, slog.Int("events", n)) }()
		for ev, err := range e.unsealed(list) {
			n++
			if !yield(ev, err) {
				return
			}
		}
	}
}

// unsealed decrypts the events of a sequence.
func (e Events) unsealed(list iter.Seq2[event.Sequenced, error]) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		for ev, err := range list {
			if err == nil {
				err = unsealEvent(e.service.keys.Load(), &ev.Event)
				if err != nil {
					ev, err = event.Sequenced{}, fmt.Errorf("event %d: %w", ev.Position, err)
				}
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// Append implements event.Store. Concurrent appends share commits.
func (e Events) Append(ctx context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	stored, err := e.writable()
	if err == nil {
		err = e.service.checkEvents(events)
	}
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	return e.sealed(ctx, events, cond, func(events []event.Event, cond *event.Condition) ([]uint64, error) {
		return stored.Append(ctx, events, cond)
	})
}

// Checkpoint implements event.Checkpointer.
func (e Events) Checkpoint(ctx context.Context, consumer string) (uint64, error) {
	stored, err := e.open()
	if err != nil {
		return 0, fmt.Errorf("checkpoint of consumer %q: %w", consumer, err)
	}
	return stored.Checkpoint(ctx, consumer)
}

// Advance implements event.Checkpointer.
func (e Events) Advance(ctx context.Context, c event.Checkpoint, events []event.Event, cond *event.Condition) ([]uint64, error) {
	stored, err := e.writable()
	if err == nil && len(events) > 0 {
		err = e.service.checkEvents(events)
	}
	if err != nil {
		return nil, fmt.Errorf("advance consumer %q to %d: %w", c.Consumer, c.To, err)
	}
	return e.sealed(ctx, events, cond, func(events []event.Event, cond *event.Condition) ([]uint64, error) {
		return stored.Advance(ctx, c, events, cond)
	})
}

// writable is open, for appends.
func (e Events) writable() (*store.Events, error) {
	stored, err := e.open()
	if err == nil && e.service.reads {
		err = ErrReadOnly
	}
	return stored, err
}

// sealed appends events, sealed if the service has keys.
func (e Events) sealed(ctx context.Context, events []event.Event, cond *event.Condition, write appender) (positions []uint64, err error) {
	// The store combines appends into groups, so the span includes the wait for
	// a group.
	appends := span(ctx, "varve.append")
	defer func() { endSpan(appends, err, "varve.events", uint64(len(positions))) }()
	keys := e.service.keys.Load()
	if keys == nil {
		return write(events, cond)
	}
	positions, err = write(e.service.sealEvents(keys, keys.Newest(), events), cond)
	if !errors.Is(err, event.ErrDuplicate) {
		return positions, err
	}
	// A repeated event may have been sealed under a key that was the newest at
	// that time, so try the older keys. An append that repeats events of
	// several keys is refused as a duplicate.
	for _, id := range keys.IDs()[1:] {
		if again, older := write(e.service.sealEvents(keys, id, events), unlessAny); older == nil {
			return again, nil
		}
	}
	return nil, err
}

// appender appends events under a condition.
type appender func([]event.Event, *event.Condition) ([]uint64, error)

// unlessAny is a condition that never holds in a store with events: an append
// under it is either a repetition or refused.
var unlessAny = event.Unless(event.All())

// checkEvents refuses events that could not be stored after sealing, and events
// that a reader would later take for sealed ones.
func (s *Service) checkEvents(events []event.Event) error {
	if s.Sealed() {
		// Check the sizes before sealing, and before doing any work.
		if err := event.Validate(events); err != nil {
			return err
		}
	}
	for i := range events {
		e := &events[i]
		if err := s.checkMessage(eventBytes(e)); err != nil {
			return fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
		switch {
		case !s.Sealed() && seal.IsSealed(e.Data):
			return fmt.Errorf("event %d of %d: %w: its data begin like sealed ones, and this service has no keys", i+1, len(events), store.ErrInvalid)
		case s.Sealed() && sealedSize(e) > event.MaxData:
			return fmt.Errorf("event %d of %d: %w: %d bytes of data and metadata, sealed, at most %d; store the rest elsewhere and keep a reference",
				i+1, len(events), store.ErrInvalid, sealedSize(e), event.MaxData)
		}
	}
	return nil
}

// eventBytes is the maximum size of an event as a gRPC message.
func eventBytes(e *event.Event) int {
	n := messageOverhead + len(e.Type) + len(e.Data) + len(e.Metadata)
	for _, tag := range e.Tags {
		n += attributeOverhead + len(tag.Key) + len(tag.Value)
	}
	return n
}

// checkEventKeys checks that the keyring has the key of the newest event. A
// service with keys also starts if that event is not sealed: it may be older
// than the sealing of events, and its reader will get an error.
func (s *Service) checkEventKeys(ctx context.Context, keys *seal.Keyring) error {
	if s.events == nil {
		return nil
	}
	for e, err := range s.events.Read(ctx, event.All(), &event.ReadOptions{Backwards: true, Limit: 1}) {
		if errors.Is(err, event.ErrTruncated) {
			return nil // no event has data any more
		}
		if err != nil {
			return err
		}
		if err := unsealEvent(keys, &e.Event); errors.Is(err, seal.ErrUnknownKey) {
			return fmt.Errorf("the newest event, %d: %w", e.Position, err)
		}
	}
	return nil
}
