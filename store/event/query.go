package event

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Query selects events. An event matches when it matches one of the items. A
// query without items selects every event.
type Query struct {
	Items []Item
}

// Item is one alternative of a query. An event matches when its type is one of Types and it has all
// of Tags. No types means any type; one of the two must be given.
type Item struct {
	Types []string
	Tags  []Tag
}

// All returns the query for every event.
func All() Query { return Query{} }

// Of returns the query for events of one of the types.
func Of(types ...string) Query { return Query{Items: []Item{{Types: types}}} }

// Tagged returns the query for events with all of the tags.
func Tagged(tags ...Tag) Query { return Query{Items: []Item{{Tags: tags}}} }

// Typed returns the query for events of one type with all of the tags.
func Typed(typ string, tags ...Tag) Query {
	return Query{Items: []Item{{Types: []string{typ}, Tags: tags}}}
}

// Or returns the query for events that q or o matches.
func (q Query) Or(o Query) Query {
	if len(q.Items) == 0 || len(o.Items) == 0 {
		return Query{}
	}
	items := make([]Item, 0, len(q.Items)+len(o.Items))
	return Query{Items: append(append(items, q.Items...), o.Items...)}
}

// Matches reports whether the query selects an event.
func (q Query) Matches(e *Event) bool {
	for i := range q.Items {
		if q.Items[i].matches(e) {
			return true
		}
	}
	return len(q.Items) == 0
}

func (it *Item) matches(e *Event) bool {
	if len(it.Types) > 0 && !slices.Contains(it.Types, e.Type) {
		return false
	}
	return !slices.ContainsFunc(it.Tags, func(t Tag) bool { return !e.HasTag(t) })
}

// Condition guards an append: it fails when an event after a position matches a query.
type Condition struct {
	FailIfEventsMatch Query

	// After is the position up to which the caller knows the events; zero means
	// that no matching event may exist at all. It may lie beyond the last
	// event.
	After uint64
}

// Unless returns the condition that no event matches a query.
func Unless(q Query) *Condition { return &Condition{FailIfEventsMatch: q} }

// ConflictError names the event that kept an append from happening. It wraps
// driver.ErrConflict.
type ConflictError struct {
	Position uint64 // of an event that matches the condition
	Item     int    // of the condition's query, from 0
	After    uint64 // of the condition
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: event %d, after %d, matches item %d of the condition; read again and decide anew",
		driver.ErrConflict, e.Position, e.After, e.Item+1)
}

func (e *ConflictError) Unwrap() error { return driver.ErrConflict }

// ErrTruncated: an event's data was removed permanently. The error is a
// *TruncatedError.
var ErrTruncated = errors.New("event is truncated")

// TruncatedError names the event without data at which a read ended. It wraps
// ErrTruncated.
type TruncatedError struct {
	Position uint64
	Before   uint64 // events at positions below this are truncated; zero when it is not known
}

func (e *TruncatedError) Error() string {
	text := fmt.Sprintf("event %d: %v", e.Position, ErrTruncated)
	if e.Before > 0 {
		text += fmt.Sprintf(", as are all before %d: read from there on, or import the archive into another store", e.Before)
	}
	return text
}

func (e *TruncatedError) Unwrap() error { return ErrTruncated }
