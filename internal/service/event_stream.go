package service

import (
	"context"
	"time"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store/event"
)

// The limits at which a batch of a stream of events is sent. A single event may
// exceed them.
const (
	batchEvents = 256
	batchBytes  = 64 << 10
)

// readAhead is how many bytes of events the store reads at once, unless one
// event is larger.
const readAhead = 1 << 20

// batch has the events of one message to a client.
type batch struct {
	events []event.Sequenced
	bytes  int
	usual  int // average bytes of an event in the previous batch
}

// fits estimates how many events fit into a batch.
func (b *batch) fits() int { return max(1, min(batchEvents, batchBytes/max(b.usual, 1))) }

// add adds an event, unless the batch has events and would become too large.
func (b *batch) add(e *event.Sequenced) bool {
	n := eventBytes(&e.Event)
	if len(b.events) > 0 && (len(b.events) == batchEvents || b.bytes+n > batchBytes) {
		return false
	}
	b.events = append(b.events, *e)
	b.bytes += n
	return true
}

// memory is the memory of a batch and of the answer made from it.
func (b *batch) memory() int64 {
	if b.bytes <= batchBytes {
		return 0 // every stream may use that much
	}
	return 3 * int64(b.bytes)
}

func (b *batch) reset() {
	if n := len(b.events); n > 0 {
		b.usual = b.bytes / n
	}
	clear(b.events)
	b.events, b.bytes = b.events[:0], 0
}

// TimeBound converts a time bound for event.ReadOptions, where the zero time
// means none. If a client sends the zero time, that is a bound nonetheless; one
// microsecond is added, since no event is that old.
func TimeBound(given *time.Time) time.Time {
	switch {
	case given == nil:
		return time.Time{}
	case given.IsZero():
		return given.Add(time.Microsecond)
	}
	return *given
}

// ReadBatches passes the events of a read to send in batches, except the last
// batch, which it returns, so that the caller can send it together with the
// end. It also returns the position up to which the store was searched, if that
// was its head. Before an error of the read, all events are sent. Memory for
// events that the store may have read ahead is reserved. Send must not retain
// the events. It fails as Read does, and with ErrTime, quota.ErrFull and send's
// errors.
func (e Events) ReadBatches(ctx context.Context, q event.Query, opts event.ReadOptions, hold *quota.Hold, send func([]event.Sequenced) error) (rest []event.Sequenced, head *uint64, err error) {
	work := e.service.worktime(ctx)
	defer work.end()
	if err := hold.Take(ctx, readAhead); err != nil {
		return nil, nil, err
	}
	if !opts.Backwards && opts.Limit == 0 {
		head = new(uint64)
		opts.Head = head
	}
	var b batch
	work.run()
	defer work.stand()
	for ev, failed := range e.Read(work.ctx, q, &opts) {
		added := failed == nil && b.add(&ev)
		if !added && len(b.events) > 0 {
			work.stand()
			hold.Await()
			err := send(b.events)
			hold.Work()
			if err != nil {
				return nil, nil, err
			}
			work.run()
			b.reset()
		}
		if failed != nil {
			return nil, nil, work.errorOf(failed)
		}
		if !added {
			b.add(&ev)
		}
		if err := hold.Take(ctx, readAhead+b.memory()); err != nil {
			return nil, nil, err
		}
	}
	hold.Shrink(b.memory())
	return b.events, head, nil
}
