package store

import (
	"fmt"

	"github.com/varvedb/varve/store/event"
)

// The vocabulary of package [event], which documents it, so that a program imports one
// package.
type (
	Event          = event.Event
	Tag            = event.Tag
	EventID        = event.ID
	SequencedEvent = event.Sequenced
	EventQuery     = event.Query
	EventItem      = event.Item
	Condition      = event.Condition
	Projector      = event.Projector

	EventStore       = event.Store
	EventReadOptions = event.ReadOptions
)

var _ EventStore = (*Events)(nil)

// ErrDuplicate: an append gives an event ID that is stored already and is not the
// repetition of an earlier append.
var ErrDuplicate = event.ErrDuplicate

// ConflictError tells which event kept an append from happening. It wraps
// ErrConflict.
type ConflictError struct {
	Position uint64 // of an event that matches the condition
	Item     int    // of the condition's query, from 0
	After    uint64 // of the condition
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: event %d, after %d, matches item %d of the condition; read again and decide anew",
		ErrConflict, e.Position, e.After, e.Item+1)
}

func (e *ConflictError) Unwrap() error { return ErrConflict }
