package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// pageBytes is the size of the data, in bytes, at which a page ends early.
const pageBytes = 1 << 20

// Read streams the events that a query selects, in order of position. It reads
// in pages and holds no view open between them, so the loop may take its time,
// append, and read. All events that were durable when Read began are read. Of
// later ones, reading forwards may yield some, in order and without a gap.
// Events that are not durable yet are read only with Visible. The events belong
// to the caller.
//
// An error ends the sequence, after the events before it: ErrInvalid, ErrClosed, ctx's own,
// ErrCorrupt, event.ErrTruncated.
func (e *Events) Read(ctx context.Context, q event.Query, opts *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	return stream("read events", func(yield func(event.Sequenced) bool) error {
		p, limit, err := newPage(q, opts)
		if err == nil && opts != nil {
			err = e.boundByTime(ctx, &p, opts.Since, opts.Until)
		}
		if err != nil {
			return err
		}
		return e.readPages(ctx, &p, limit, yield)
	})
}

// newPage makes the first page of a read.
func newPage(q event.Query, opts *event.ReadOptions) (p eventlog.Page, limit int, err error) {
	if opts == nil {
		opts = &event.ReadOptions{}
	}
	if err := q.Validate(); err != nil {
		return p, 0, err
	}
	if opts.Limit < 0 {
		return p, 0, fmt.Errorf("%w: a limit of %d events", ErrInvalid, opts.Limit)
	}
	limit = cmp.Or(opts.Limit, math.MaxInt)
	p = eventlog.Page{Items: eventlog.Compile(q), Backwards: opts.Backwards, Bytes: pageBytes, Visible: opts.Visible}
	if opts.OnlyLast {
		p.Last = &eventlog.Last{}
	} else {
		p.Items = eventlog.Merge(p.Items)
	}
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

// boundByTime narrows a page to the events from one time on and before another;
// zero is no bound.
func (e *Events) boundByTime(ctx context.Context, p *eventlog.Page, since, until time.Time) error {
	if since.IsZero() && until.IsZero() {
		return nil
	}
	return e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		if !since.IsZero() {
			first, err := e.log.FirstSince(ctx, q, ceilMicro(since))
			if err != nil {
				return err
			}
			if first == 0 {
				first = math.MaxInt64
			}
			p.After = max(p.After, first-1)
		}
		if until.IsZero() {
			return nil
		}
		end, err := e.log.FirstSince(ctx, q, ceilMicro(until))
		if err == nil && end == 0 {
			end, err = e.log.Head(ctx, q)
			end++
		}
		if p.Before == 0 || end < p.Before {
			p.Before = end
		}
		return err
	})
}

// ceilMicro rounds a time up to microseconds.
func ceilMicro(t time.Time) int64 {
	micros := t.UnixMicro()
	if time.UnixMicro(micros).Before(t) {
		micros++
	}
	return micros
}

// readPages reads pages until the end, the limit, or until yield returns false.
// It leaves p at the next page.
func (e *Events) readPages(ctx context.Context, p *eventlog.Page, limit int, yield func(event.Sequenced) bool) error {
	first, last := e.log.PageSizes()
	size := first
	if p.Wide() {
		size = last // each page finds all of them again
	}
	for ; limit > 0; size = min(8*size, last) {
		p.Limit = min(size, limit)
		list, end, err := e.page(ctx, p)
		bytes := 0
		for i := range list {
			bytes += len(list[i].Data) + len(list[i].Metadata)
			if !yield(list[i]) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		if n := len(list); n > 0 {
			// A server sends all requested rows, so rows beyond the page's
			// bytes are wasted.
			size = min(size, max(1, pageBytes/8*n/max(bytes, n)))
		}
		limit -= len(list)
		if end {
			return nil
		}
	}
	return nil
}

// page reads a page in a new view and moves p behind it. With an error it
// returns the events before the error.
func (e *Events) page(ctx context.Context, p *eventlog.Page) (list []event.Sequenced, end bool, err error) {
	if p.Last != nil && !p.Visible { // last events cannot be left out afterwards
		const all = math.MaxInt64 - 1
		if to, ok := e.tail.Visible(all); ok && to < all && (p.Before == 0 || p.Before > to+1) {
			p.Before = to + 1
		}
	}
	p.Tail, p.Final = e.tail, true
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		list, end, err = e.log.Read(ctx, q, *p)
		return err
	})
	list, end, hidden := e.leaveOutUndurable(p, list, end && err == nil)
	if hidden != nil {
		return nil, end, errors.Join(err, hidden)
	}
	if err != nil {
		err = e.tellHorizon(ctx, err)
	}
	if len(list) == 0 {
		return nil, end, err
	}
	if last := list[len(list)-1].Position; p.Backwards {
		p.Before = last
	} else {
		p.After = last
	}
	return list, end, err
}

// leaveOutUndurable removes events that are not durable from a page. A forward
// read ends there, because these events were committed after it began, or are
// not acknowledged. For the last event of each item, which has no substitute, it
// makes the page durable instead.
func (e *Events) leaveOutUndurable(p *eventlog.Page, list []event.Sequenced, end bool) ([]event.Sequenced, bool, error) {
	if p.Visible {
		return list, end, nil
	}
	seen := uint64(0)
	if len(list) > 0 {
		seen = max(list[0].Position, list[len(list)-1].Position)
	}
	if end && p.Head != nil {
		seen = max(seen, *p.Head)
	}
	if p.Last != nil { // the previous one is not known
		return list, end, e.commit.ensure(seen)
	}
	to, err := e.commit.visible(seen)
	if err != nil || to >= seen {
		return list, end, err
	}
	list = slices.DeleteFunc(list, func(ev event.Sequenced) bool { return ev.Position > to })
	if p.Backwards {
		p.Before = to + 1 // in case nothing remains of this page
		return list, end, nil
	}
	if p.Head != nil {
		*p.Head = to
	}
	return list, true, nil
}

// Subscribe streams the events that a query selects from a position on, and
// then later ones as this process or another commits them, each once and in
// order. It ends only with an error, including ctx's, or when the caller stops.
// To continue after a restart, begin at the position after the last handled
// event.
func (e *Events) Subscribe(ctx context.Context, q event.Query, from uint64) iter.Seq2[event.Sequenced, error] {
	return stream("subscribe", func(yield func(event.Sequenced) bool) error { return e.follow(ctx, q, from, yield) })
}

func (e *Events) follow(ctx context.Context, q event.Query, from uint64, yield func(event.Sequenced) bool) error {
	p, limit, err := newPage(q, &event.ReadOptions{From: from})
	if err != nil {
		return err
	}
	defer e.listen()()
	poll := time.NewTimer(e.opts.PollInterval)
	defer poll.Stop()
	for stopped := false; ; {
		// A commit between the read and the wait has already closed this
		// channel, so no event is missed.
		news := e.news.next()
		err := e.readPages(ctx, &p, limit, func(ev event.Sequenced) bool {
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
