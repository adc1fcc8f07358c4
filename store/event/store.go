package event

import (
	"context"
	"iter"
)

// Store is an event store as its users see it, in the process or over a network:
// everything that deciding takes. Its methods may be called from several goroutines.
type Store interface {
	// Head returns the highest position, zero when there is no event.
	Head(ctx context.Context) (uint64, error)

	// Read streams the events that a query selects, in order of position. A nil opts
	// means the zero value.
	Read(ctx context.Context, q Query, opts *ReadOptions) iter.Seq2[Sequenced, error]

	// Append adds events at consecutive positions, all or none, unless an event
	// matches the condition; nil is no condition. It returns their positions once
	// they are durable.
	Append(ctx context.Context, events []Event, cond *Condition) ([]uint64, error)

	// Subscribe streams the events that a query selects from a position on, and then
	// those that are appended. It ends only with an error, or when the caller stops.
	Subscribe(ctx context.Context, q Query, from uint64) iter.Seq2[Sequenced, error]
}

// ReadOptions narrow a read. The zero value reads everything forwards.
type ReadOptions struct {
	// From is the first position to read, whether or not an event is there.
	// Zero means the beginning, or the end when reading backwards.
	From uint64

	// Backwards reads from high positions to low ones.
	Backwards bool

	// Limit is the number of events after which to stop. Zero means no limit.
	Limit int

	// Visible also reads events that are committed, but may be lost when power fails:
	// those of appends that are not acknowledged yet.
	Visible bool

	// Head, unless it is nil, receives the position up to which the store was looked
	// at, whether or not the last event matched: what a condition on what was read is
	// to give as Condition.After. It is set when a read forwards without a limit has
	// come to its end.
	Head *uint64
}
