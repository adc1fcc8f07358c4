package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// Append implements event.Store. See Events for an append whose answer is lost.
func (e *Events) Append(ctx context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	const op = "append"
	// Check the events here, because invalid ones may be larger than a message.
	// The error is the same.
	if err := event.Validate(events); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	request := &varvev1.AppendRequest{Events: eventMessages(events)}
	var err error
	if request.Condition, err = conditionMessage(cond); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return e.append(ctx, op, repeatable(events), func(o grpc.CallOption) (*varvev1.AppendResponse, error) {
		return e.rpc.Append(ctx, request, o)
	})
}

// Checkpoint implements event.Checkpointer.
func (e *Events) Checkpoint(ctx context.Context, consumer string) (at uint64, err error) {
	op := fmt.Sprintf("checkpoint of consumer %q", consumer)
	if err := (&event.Checkpoint{Consumer: consumer}).Validate(); err != nil {
		return 0, fmt.Errorf("%s: %w", op, err)
	}
	err = e.repeat(ctx, op, func(*patience) (bool, error) {
		resp, err := e.rpc.Checkpoint(ctx, &varvev1.CheckpointRequest{Consumer: consumer})
		at = resp.GetPosition()
		return transient(err), err
	})
	return at, err
}

// Advance implements event.Checkpointer. See Events for an append whose answer
// is lost.
func (e *Events) Advance(ctx context.Context, c event.Checkpoint, events []event.Event, cond *event.Condition) ([]uint64, error) {
	op := fmt.Sprintf("advance consumer %q to %d", c.Consumer, c.To)
	err := c.Validate()
	if err == nil && len(events) > 0 {
		err = event.Validate(events)
	}
	request := &varvev1.AdvanceRequest{Consumer: c.Consumer, From: c.From, To: c.To}
	if err == nil {
		request.Condition, err = conditionMessage(cond)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	request.Events = eventMessages(events)
	return e.append(ctx, op, repeatable(events), func(o grpc.CallOption) (*varvev1.AppendResponse, error) {
		return e.rpc.Advance(ctx, request, o)
	})
}

// repeatable reports whether repeating an append of these events has no further
// effect.
func repeatable(events []event.Event) bool {
	for i := range events {
		if events[i].ID.IsZero() {
			return false
		}
	}
	return len(events) > 0
}

// append sends a request, and repeats it if that may help and is harmless. Once
// an attempt was sent and not answered, the outcome is unknown until another
// attempt is answered.
func (e *Events) append(ctx context.Context, op string, repeatable bool, send func(grpc.CallOption) (*varvev1.AppendResponse, error)) (positions []uint64, err error) {
	unknown := false
	err = e.repeat(ctx, op, func(*patience) (bool, error) {
		var to peer.Peer // has an address when there was a connection to send to
		resp, err := send(grpc.Peer(&to))
		positions = resp.GetPositions()
		if err == nil {
			return false, nil
		}
		sent := to.Addr != nil
		again := transient(err) && (repeatable || !sent || undone(err))
		unknown = (unknown || sent && unanswered(err)) && !decided(err)
		return again, err
	})
	if err != nil && unknown && !errors.Is(err, driver.ErrUnknownOutcome) {
		err = fmt.Errorf("%w: %w", err, driver.ErrUnknownOutcome)
	}
	return positions, err
}
