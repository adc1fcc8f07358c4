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

// Read implements event.Store. After a lost connection it continues behind the
// last event.
func (e *Events) Read(ctx context.Context, q event.Query, opts *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		const op = "read events"
		err := q.Validate()
		if opts == nil {
			opts = &event.ReadOptions{}
		}
		if err == nil && opts.Limit < 0 {
			err = fmt.Errorf("%w: a limit of %d events", event.ErrInvalid, opts.Limit)
		}
		if err != nil {
			yield(event.Sequenced{}, fmt.Errorf("%s: %w", op, err))
			return
		}
		r := reading{
			request: &varvev1.ReadRequest{
				Query: queryMessage(q), From: opts.From, Since: micros(opts.Since), Until: micros(opts.Until),
				OnlyLast: opts.OnlyLast, Backwards: opts.Backwards, Limit: uint64(opts.Limit),
			},
			limited: opts.Limit > 0, head: opts.Head, yield: yield,
		}
		if err := e.repeat(ctx, op, func(p *patience) (bool, error) { return r.run(ctx, e, p) }); err != nil {
			yield(event.Sequenced{}, err)
		}
	}
}

// reading is a running read. Its request asks for the events that are still
// missing.
type reading struct {
	request *varvev1.ReadRequest
	limited bool
	whole   bool // the read can only be repeated as a whole
	done    bool
	head    *uint64
	yield   func(event.Sequenced, error) bool
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
		// Pass the events on, and move the request behind each.
		for _, message := range m.GetEvents() {
			ev := sequenced(message)
			if r.limited {
				r.request.Limit--
				r.done = r.request.GetLimit() == 0
			}
			if r.request.GetBackwards() {
				// With OnlyLast the rest of a read cannot be requested: an item
				// whose last event has already come would return the one before
				// it.
				r.whole = r.request.GetOnlyLast()
				r.request.From = ev.Position - 1
				r.done = r.done || ev.Position <= 1
			} else {
				r.request.From = ev.Position + 1
			}
			if !r.yield(ev, nil) {
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

// Subscribe implements event.Store. After a lost connection it continues,
// however long that lasts: end ctx to give up.
func (e *Events) Subscribe(ctx context.Context, q event.Query, from uint64) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		const op = "subscribe"
		if err := q.Validate(); err != nil {
			yield(event.Sequenced{}, fmt.Errorf("%s: %w", op, err))
			return
		}
		// The request asks for the next events.
		request := &varvev1.SubscribeRequest{Query: queryMessage(q), From: from}
		err := e.repeat(ctx, op, func(p *patience) (again bool, err error) {
			following, cancel := context.WithCancel(ctx)
			defer cancel()
			stream, err := e.rpc.Subscribe(following, request)
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
					request.From = ev.GetPosition() + 1
					if !yield(sequenced(ev), nil) {
						return false, nil
					}
					if err := ctx.Err(); err != nil {
						return false, err
					}
				}
			}
		})
		if err != nil {
			yield(event.Sequenced{}, err)
		}
	}
}

// cut recognises a stream that ended without its end mark.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return errCut
	}
	return err
}
