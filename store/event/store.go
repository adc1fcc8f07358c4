package event

import (
	"context"
	"iter"
	"time"
)

// Store is the part of an event store that decisions need, in this process or
// over a network. Its methods may be called from several goroutines.
type Store interface {
	// Head returns the highest position, zero when there is no event.
	Head(ctx context.Context) (uint64, error)

	// Read streams the events that a query selects, in order of position. A nil opts means the zero value.
	Read(ctx context.Context, q Query, opts *ReadOptions) iter.Seq2[Sequenced, error]

	// Append adds events at consecutive positions, all or none, unless an event matches the condition; nil is
	// no condition. It returns their positions once they are durable.
	Append(ctx context.Context, events []Event, cond *Condition) ([]uint64, error)

	// Subscribe streams the events that a query selects from a position on, and
	// then new ones as they are appended. It ends only with an error, or when
	// the caller stops.
	Subscribe(ctx context.Context, q Query, from uint64) iter.Seq2[Sequenced, error]
}

// ReadOptions narrow a read. The zero value reads everything forwards.
type ReadOptions struct {
	// From is the first position to read, whether or not an event is there.
	// Zero means the beginning, or the end when reading backwards.
	From uint64

	// Since and Until, unless zero, select events by time: from Since on, and
	// before Until. Times never decrease from one event to the next. Until
	// bounds the events that exist when the read begins.
	Since, Until time.Time

	// OnlyLast reads, for each item of the query, only the last event that
	// matches it within From, Since and Until; without items, the last event.
	// An event that is the last one of several items is returned once.
	// Backwards and Limit then order and bound these events.
	OnlyLast bool

	// Backwards reads from high positions to low ones.
	Backwards bool

	// Limit is the number of events after which to stop. Zero means no limit.
	Limit int

	// Visible also reads events that are committed but not yet acknowledged; a
	// power failure may still lose them.
	Visible bool

	// Head, unless nil, receives the position up to which the store was
	// searched, whether or not the last event matched. A condition on this read
	// uses it as Condition.After. It is set when a forward read without a limit
	// has reached its end. With Until it is the position of the last event
	// before that time.
	Head *uint64
}
