package service

import (
	"context"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
)

// A batch of a stream of events is sent when it has as many events or bytes. One event
// may have more.
const (
	batchEvents = 256
	batchBytes  = 64 << 10
)

// readAhead is what the store may have read of a page, of which the rest is still to come.
const readAhead = 1 << 20

// batch is events on their way to a client.
type batch struct {
	events []store.SequencedEvent
	bytes  int
}

// add adds an event, unless the batch has some and would be too large with it.
func (b *batch) add(e *store.SequencedEvent) bool {
	n := eventBytes(&e.Event)
	if len(b.events) > 0 && (len(b.events) == batchEvents || b.bytes+n > batchBytes) {
		return false
	}
	b.events = append(b.events, *e)
	b.bytes += n
	return true
}

// memory is that of a batch and of the answer that is made of it.
func (b *batch) memory() int64 {
	if b.bytes <= batchBytes {
		return 0 // every stream has so much
	}
	return 3 * int64(b.bytes)
}

func (b *batch) reset() {
	clear(b.events)
	b.events, b.bytes = b.events[:0], 0
}

// ReadBatches gives the events of a read to send in batches, and returns the last of them, so
// that the caller can send them together with the end. While the client takes a batch, what the
// store has read ahead is held; where memory is short it is given up and read again. What is
// sent may not be kept. It fails as Read does, and with ErrTime, quota.ErrFull and send's errors.
func (e Events) ReadBatches(ctx context.Context, q store.EventQuery, opts *store.EventReadOptions, hold *quota.Hold, send func([]store.SequencedEvent) error) (rest []store.SequencedEvent, err error) {
	work := e.service.worktime(ctx)
	defer work.end()
	r := &batchReader{events: e, work: work, query: q, opts: *opts, hold: hold, give: send}
	for again := true; again; {
		again, err = r.read()
		if err != nil {
			return nil, work.cause(err)
		}
	}
	return r.batch.events, nil
}

// batchReader is a read that can be broken off and begun again.
type batchReader struct {
	events Events
	work   *worktime
	query  store.EventQuery
	opts   store.EventReadOptions // of what is still to be read
	hold   *quota.Hold
	batch  batch
	give   func([]store.SequencedEvent) error // to the client
}

// read reads until the end, or until what the store has read ahead must be given up.
func (r *batchReader) read() (again bool, err error) {
	// A read of what is last under some tags knows what it has passed, and goes on.
	goesOn := r.opts.OnlyLast
	wants, last := int64(0), false
	r.work.run()
	for e, failed := range r.events.Read(r.work.ctx, r.query, &r.opts) {
		if err = failed; err != nil {
			break
		}
		if !r.batch.add(&e) {
			if again = !r.hold.Try(max(readAhead, r.batch.memory())) && !goesOn; again {
				break
			}
			if err = r.flush(); err != nil {
				break
			}
			r.batch.add(&e)
		}
		if more := r.batch.memory(); goesOn {
			err = r.hold.Take(r.work.ctx, more)
		} else if !r.hold.Try(more) {
			wants = more
			r.batch.reset()
		}
		if err != nil || wants > 0 {
			break
		}
		if last = r.passed(e.Position) && !goesOn; last {
			break
		}
	}
	r.work.stand()
	switch {
	case err != nil || last:
		return false, err
	case wants > 0:
		return true, r.hold.Take(r.work.ctx, wants)
	case again:
		return true, r.send()
	}
	return false, nil
}

// passed moves the read behind an event that is in the batch, and tells whether it was the last.
func (r *batchReader) passed(position uint64) (last bool) {
	o := &r.opts
	if o.Limit > 0 {
		if o.Limit--; o.Limit == 0 {
			return true
		}
	}
	if !o.Backwards {
		o.From = position + 1
		return false
	}
	o.From = position - 1
	return o.From == 0
}

// flush sends the batch while the store has more to give.
func (r *batchReader) flush() error {
	r.work.stand()
	err := r.send()
	r.work.run()
	return err
}

// send sends the batch and gives back what was held.
func (r *batchReader) send() error {
	r.hold.Await()
	err := r.give(r.batch.events)
	r.hold.Release()
	r.batch.reset()
	return err
}
