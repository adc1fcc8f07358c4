package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/store/event"
)

// Head implements event.Store.
func (e *Events) Head(ctx context.Context) (head uint64, err error) {
	err = e.repeat(ctx, "head of the events", func(*patience) (bool, error) {
		resp, err := e.rpc.Head(ctx, &varvev1.HeadRequest{})
		head = resp.GetPosition()
		return transient(err), err
	})
	return head, err
}

// Read implements event.Store. It is carried on after the last event when the connection
// is lost.
func (e *Events) Read(ctx context.Context, q event.Query, opts *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		const op = "read events"
		r, err := newReading(q, opts, yield)
		if err != nil {
			err = fmt.Errorf("%s: %w", op, err)
		} else {
			err = e.repeat(ctx, op, func(p *patience) (bool, error) { return r.run(ctx, e, p) })
		}
		if err != nil {
			yield(event.Sequenced{}, err)
		}
	}
}

// reading is a read on its way. Its request asks for the missing events.
type reading struct {
	request *varvev1.ReadRequest
	limited bool
	whole   bool // the rest cannot be asked for separately
	done    bool
	head    *uint64
	yield   func(event.Sequenced, error) bool
}

func newReading(q event.Query, opts *event.ReadOptions, yield func(event.Sequenced, error) bool) (*reading, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if opts == nil {
		opts = &event.ReadOptions{}
	}
	if opts.Limit < 0 {
		return nil, fmt.Errorf("%w: a limit of %d events", event.ErrInvalid, opts.Limit)
	}
	return &reading{
		request: &varvev1.ReadRequest{
			Query: queryMessage(q), From: opts.From, Since: micros(opts.Since), Until: micros(opts.Until),
			OnlyLast: opts.OnlyLast, Backwards: opts.Backwards, Limit: uint64(opts.Limit),
		},
		limited: opts.Limit > 0, head: opts.Head, yield: yield,
	}, nil
}

// run reads until the end or an error, and reports whether it may be tried
// again.
func (r *reading) run(ctx context.Context, e *Events, p *patience) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when the caller stops
	stream, err := e.rpc.Read(ctx, r.request)
	if err != nil {
		return transient(err), err
	}
	for !r.done {
		m, err := stream.Recv()
		if err != nil {
			err = cut(err)
			return transient(err) && !r.whole, err
		}
		p.reset()
		for _, ev := range m.GetEvents() {
			if !r.add(sequenced(ev)) {
				return false, nil
			}
		}
		if end := m.GetEnd(); end != nil {
			r.done = true
			if r.head != nil && end.Head != nil {
				*r.head = end.GetHead()
			}
		}
	}
	return false, nil
}

// add hands an event on, and moves the request behind it.
func (r *reading) add(ev event.Sequenced) (more bool) {
	if r.limited {
		r.request.Limit--
		r.done = r.request.GetLimit() == 0
	}
	if r.request.GetBackwards() {
		// An item whose last event has come would give the one before it.
		r.whole = r.request.GetOnlyLast()
		r.request.From = ev.Position - 1
		r.done = r.done || ev.Position <= 1
	} else {
		r.request.From = ev.Position + 1
	}
	return r.yield(ev, nil)
}

// Subscribe implements event.Store. Once it has begun it is carried on when the
// connection is lost, however long that lasts: end ctx to give up.
func (e *Events) Subscribe(ctx context.Context, q event.Query, from uint64) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		const op = "subscribe"
		err := q.Validate()
		if err != nil {
			err = fmt.Errorf("%s: %w", op, err)
		} else {
			s := subscription{request: &varvev1.SubscribeRequest{Query: queryMessage(q), From: from}, yield: yield}
			err = e.repeat(ctx, op, func(p *patience) (bool, error) { return s.run(ctx, e, p) })
		}
		if err != nil {
			yield(event.Sequenced{}, err)
		}
	}
}

// subscription is a subscription on its way. Its request asks for what comes next.
type subscription struct {
	request *varvev1.SubscribeRequest
	yield   func(event.Sequenced, error) bool
}

// run follows until an error, and reports whether it may be carried on.
func (s *subscription) run(ctx context.Context, e *Events, p *patience) (again bool, err error) {
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.rpc.Subscribe(ctx, s.request)
	if err != nil {
		return transient(err), err
	}
	if header, _ := stream.Header(); header != nil { // the receive below returns the same error
		p.until = time.Time{}
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			err = cut(err)
			return transient(err), err
		}
		p.pause = firstPause
		for _, ev := range m.GetEvents() {
			s.request.From = ev.GetPosition() + 1
			if !s.yield(sequenced(ev), nil) {
				return false, nil
			}
			if err := parent.Err(); err != nil {
				return false, err
			}
		}
	}
}

// cut tells the end of a stream that has not said that it is complete from other errors.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return errCut
	}
	return err
}
