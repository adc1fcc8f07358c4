package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varvedb/varve/store/entity"
)

// The limits of an append. They keep index entries below every engine's
// maximum, and bound the memory of one request.
const (
	MaxType        = 256       // bytes of a type
	MaxTag         = 1024      // bytes of a tag, key and value together
	MaxTags        = 128       // tags of an event
	MaxData        = 16 << 20  // bytes of an event's data
	MaxMetadata    = 1 << 20   // bytes of an event's metadata
	MaxEvents      = 100_000   // events of one append
	MaxAppendBytes = 256 << 20 // data and metadata of one append
	MaxItems       = 10_000    // items of a query
	MaxTerms       = 50_000    // types and tags of all items of a query
	MaxItemTypes   = 128       // types of an item
	MaxItemTags    = 16        // tags of an item
)

// ErrInvalid: a malformed event, query or condition.
var ErrInvalid = entity.ErrInvalid

// ErrDuplicate: an event ID is stored already, and the append does not repeat
// an earlier one.
var ErrDuplicate = errors.New("event ID is taken")

// invalid returns an error that wraps ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Validate checks the events of one append. The error wraps ErrInvalid and
// names the event and the fault.
func Validate(events []Event) error {
	switch {
	case len(events) == 0:
		return invalid("no events to append")
	case len(events) > MaxEvents:
		return invalid("%d events in one append, at most %d; cut it into several", len(events), MaxEvents)
	}
	total := 0
	var ids map[ID]int
	for i := range events {
		e := &events[i]
		if err := e.validate(); err != nil {
			return fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
		total += len(e.Data) + len(e.Metadata)
		if e.ID.IsZero() || len(events) == 1 {
			continue
		}
		if ids == nil {
			ids = make(map[ID]int, len(events))
		}
		if first, dup := ids[e.ID]; dup {
			return invalid("events %d and %d of the append have the same ID %s", first+1, i+1, e.ID)
		}
		ids[e.ID] = i
	}
	if total > MaxAppendBytes {
		return invalid("%d bytes of data in one append, at most %d; cut it into several", total, MaxAppendBytes)
	}
	return nil
}

func (e *Event) validate() error {
	if err := checkType(e.Type); err != nil {
		return err
	}
	switch {
	case len(e.Tags) > MaxTags:
		return invalid("%d tags, at most %d", len(e.Tags), MaxTags)
	case len(e.Data) > MaxData:
		return invalid("%d bytes of data, at most %d; store the rest elsewhere and keep a reference", len(e.Data), MaxData)
	case len(e.Metadata) > MaxMetadata:
		return invalid("%d bytes of metadata, at most %d", len(e.Metadata), MaxMetadata)
	}
	return checkTags(e.Tags)
}

func checkType(typ string) error {
	switch {
	case typ == "":
		return invalid("no type")
	case len(typ) > MaxType:
		return invalid("a type of %d bytes, at most %d", len(typ), MaxType)
	case !utf8.ValidString(typ) || strings.IndexByte(typ, 0) >= 0:
		return invalid("type %q: want UTF-8 without U+0000", typ)
	}
	return nil
}

func checkTags(tags []Tag) error {
	for i, t := range tags {
		switch {
		case t.Key == "":
			return invalid("tag %d has no key", i+1)
		case len(t.Key)+len(t.Value) > MaxTag:
			return invalid("tag %d, %.40q…, has %d bytes, at most %d", i+1, t.Key, len(t.Key)+len(t.Value), MaxTag)
		case !utf8.ValidString(t.Key) || !utf8.ValidString(t.Value):
			return invalid("tag %q is not UTF-8", t)
		}
		if slices.Contains(tags[:i], t) {
			return invalid("tag %q is given twice", t)
		}
	}
	return nil
}

// Validate checks a query. The error wraps ErrInvalid and names the item.
func (q Query) Validate() error {
	if len(q.Items) > MaxItems {
		return invalid("a query of %d items, at most %d", len(q.Items), MaxItems)
	}
	terms := 0
	for i := range q.Items {
		if err := q.Items[i].validate(); err != nil {
			return fmt.Errorf("item %d of the query: %w", i+1, err)
		}
		terms += len(q.Items[i].Types) + len(q.Items[i].Tags)
	}
	if terms > MaxTerms {
		return invalid("a query of %d types and tags in all, at most %d", terms, MaxTerms)
	}
	return nil
}

func (it *Item) validate() error {
	switch {
	case len(it.Types) == 0 && len(it.Tags) == 0:
		return invalid("neither types nor tags; a query without items selects every event")
	case len(it.Types) > MaxItemTypes:
		return invalid("%d types, at most %d", len(it.Types), MaxItemTypes)
	case len(it.Tags) > MaxItemTags:
		return invalid("%d tags, at most %d", len(it.Tags), MaxItemTags)
	}
	for _, typ := range it.Types {
		if err := checkType(typ); err != nil {
			return err
		}
	}
	return checkTags(it.Tags)
}
