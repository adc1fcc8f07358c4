package store

import "github.com/varvedb/varve/store/event"

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
	ConflictError  = event.ConflictError

	EventStore       = event.Store
	EventReadOptions = event.ReadOptions
)

var _ EventStore = (*Events)(nil)

// ErrDuplicate: an append gives an event ID that is stored already and is not the
// repetition of an earlier append.
var ErrDuplicate = event.ErrDuplicate
