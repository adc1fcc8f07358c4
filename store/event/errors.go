package event

import (
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// The errors of a Store that callers branch on, with errors.Is; package store has the
// same ones, and those of its engines.
var (
	// ErrInvalid: a malformed event, query or condition.
	ErrInvalid = entity.ErrInvalid
	// ErrConflict: an event matches the condition of an append. Such an error is a
	// *ConflictError.
	ErrConflict = driver.ErrConflict
	// ErrDuplicate: an event ID is stored already, and what is appended is not the
	// repetition of an earlier append.
	ErrDuplicate = errors.New("event ID is taken")
)

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
