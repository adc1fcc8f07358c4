package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// The sizes of the pages in which events are read: small at first, for the many
// queries with few results. A page also ends when its data reaches pageBytes.
const (
	firstPage = 64
	lastPage  = 2048
	pageBytes = 1 << 20
)

// Read streams the events that a query selects, in order of position. It reads in
// pages and holds no view open while the caller is busy, so the loop may take its
// time, append, and read. What was durable when Read began is read completely;
// of what comes later, reading forwards may yield some, in order and
// without gap. What is not durable yet is read only by who asks for it. A nil opts means the zero value. The events belong to the caller.
//
// An error ends the sequence: ErrInvalid, ErrClosed, ctx's own, ErrCorrupt.
func (e *Events) Read(ctx context.Context, q EventQuery, opts *EventReadOptions) iter.Seq2[SequencedEvent, error] {
	return func(yield func(SequencedEvent, error) bool) {
		p, limit, err := newPage(q, opts)
		if err == nil {
			err = e.readPages(ctx, &p, limit, func(ev SequencedEvent) bool { return yield(ev, nil) })
		}
		if err != nil {
			yield(SequencedEvent{}, fmt.Errorf("read events: %w", err))
		}
	}
}

// newPage makes the first page of a read.
func newPage(q EventQuery, opts *EventReadOptions) (p eventlog.Page, limit int, err error) {
	if opts == nil {
		opts = &EventReadOptions{}
	}
	if err := q.Validate(); err != nil {
		return p, 0, err
	}
	if opts.Limit < 0 {
		return p, 0, fmt.Errorf("%w: a limit of %d events", ErrInvalid, opts.Limit)
	}
	limit = opts.Limit
	if limit == 0 {
		limit = math.MaxInt
	}
	p = eventlog.Page{Items: eventlog.Compile(q), Backwards: opts.Backwards, Bytes: pageBytes, Visible: opts.Visible}
	if !opts.Backwards && opts.Limit == 0 {
		p.Head = opts.Head
	}
	switch {
	case opts.From == 0:
	case opts.Backwards:
		p.Before = min(opts.From, math.MaxInt64-1) + 1
	default:
		p.After = opts.From - 1
	}
	return p, limit, nil
}

// readPages reads pages until the end, the limit, or until yield returns false. It
// leaves p at the page after the last one.
func (e *Events) readPages(ctx context.Context, p *eventlog.Page, limit int, yield func(SequencedEvent) bool) error {
	for size := firstPage; limit > 0; size = min(4*size, lastPage) {
		p.Limit = min(size, limit)
		list, end, err := e.page(ctx, p)
		if err != nil {
			return err
		}
		for i := range list {
			if !yield(list[i]) {
				return nil
			}
		}
		limit -= len(list)
		if end {
			return nil
		}
	}
	return nil
}

// page reads a page in a view of its own and moves p behind it.
func (e *Events) page(ctx context.Context, p *eventlog.Page) (list []SequencedEvent, end bool, err error) {
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		list, end, err = e.log.Read(ctx, q, *p)
		return err
	})
	if err == nil {
		list, end, err = e.shore.cut(p, list, end)
	}
	if err != nil || len(list) == 0 {
		return nil, end, err
	}
	if last := list[len(list)-1].Position; p.Backwards {
		p.Before = last
	} else {
		p.After = last
	}
	return list, end, nil
}

// Subscribe streams the events that a query selects from a position on, and then
// those that are appended, by this process or another, as they are committed:
// each once and in order. It ends only with an error, ctx's own among them, or
// when the caller stops. To go on after a restart, begin at the position after
// that of the last event handled.
func (e *Events) Subscribe(ctx context.Context, q EventQuery, from uint64) iter.Seq2[SequencedEvent, error] {
	return func(yield func(SequencedEvent, error) bool) {
		if err := e.follow(ctx, q, from, func(ev SequencedEvent) bool { return yield(ev, nil) }); err != nil {
			yield(SequencedEvent{}, fmt.Errorf("subscribe: %w", err))
		}
	}
}

func (e *Events) follow(ctx context.Context, q EventQuery, from uint64, yield func(SequencedEvent) bool) error {
	p, limit, err := newPage(q, &EventReadOptions{From: from})
	if err != nil {
		return err
	}
	defer e.listen()()
	poll := time.NewTimer(e.opts.PollInterval)
	defer poll.Stop()
	for stopped := false; ; {
		// A commit between the read and the wait has closed this channel.
		news := e.news.next()
		err := e.readPages(ctx, &p, limit, func(ev SequencedEvent) bool {
			stopped = !yield(ev)
			return !stopped && ctx.Err() == nil
		})
		if err != nil || stopped {
			return err
		}
		poll.Reset(e.pollInterval())
		select {
		case <-news:
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Project reads the events that any of the projectors selects, once, and applies
// each to those that select it. It returns the condition that guards a decision
// made on their states: that nothing any of them selects was appended since. An
// error of a projector ends the pass.
func (e *Events) Project(ctx context.Context, projectors ...Projector) (*Condition, error) {
	if len(projectors) == 0 {
		return nil, fmt.Errorf("project: %w: no projectors", ErrInvalid)
	}
	queries := make([]EventQuery, len(projectors))
	for i, p := range projectors {
		queries[i] = p.Selects()
	}
	cond := &Condition{FailIfEventsMatch: queries[0]}
	for _, q := range queries[1:] {
		cond.FailIfEventsMatch = cond.FailIfEventsMatch.Or(q)
	}
	for ev, err := range e.Read(ctx, cond.FailIfEventsMatch, &EventReadOptions{Head: &cond.After}) {
		if err != nil {
			return nil, fmt.Errorf("project: %w", err)
		}
		if err := apply(projectors, queries, &ev); err != nil {
			return nil, fmt.Errorf("project: event %d: %w", ev.Position, err)
		}
	}
	return cond, nil
}

func apply(projectors []Projector, queries []EventQuery, ev *event.Sequenced) error {
	for i, q := range queries {
		if len(queries) > 1 && !q.Matches(&ev.Event) {
			continue
		}
		if err := projectors[i].Apply(ev); err != nil {
			return err
		}
	}
	return nil
}
