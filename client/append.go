package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/store/event"
)

// Append implements event.Store. See Events for an append without an answer.
func (e *Events) Append(ctx context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	const op = "append"
	// What is not valid may be more than can be sent, and is refused in the same words.
	if err := event.Validate(events); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	request := &varvev1.AppendRequest{Events: eventMessages(events)}
	if cond != nil {
		if err := cond.FailIfEventsMatch.Validate(); err != nil {
			return nil, fmt.Errorf("%s: condition: %w", op, err)
		}
		request.Condition = &varvev1.Condition{FailIfEventsMatch: queryMessage(cond.FailIfEventsMatch), After: cond.After}
	}
	repeatable := true
	for i := range events {
		repeatable = repeatable && !events[i].ID.IsZero()
	}
	var positions []uint64
	err := e.repeat(ctx, op, func(*patience) (again bool, err error) {
		positions, again, err = e.append(ctx, request, repeatable)
		return again, err
	})
	return positions, err
}

// append sends a request once, and tells whether it may be sent again.
func (e *Events) append(ctx context.Context, request *varvev1.AppendRequest, repeatable bool) ([]uint64, bool, error) {
	var to peer.Peer // has an address when there was a connection to send to
	resp, err := e.rpc.Append(ctx, request, grpc.Peer(&to))
	switch {
	case err == nil:
		return resp.GetPositions(), false, nil
	case to.Addr != nil && unanswered(err):
		return nil, repeatable && transient(err), &unknownOutcome{err}
	}
	return nil, transient(err) && (repeatable || to.Addr == nil || undone(err)), err
}
