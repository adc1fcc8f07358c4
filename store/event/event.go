// Package event defines the terms of the event store: events with tags, queries
// over them, and the conditions under which they are appended, after the
// specification of Dynamic Consistency Boundaries (https://dcb.events). It also
// has projections and decisions that work on any Store. It does no I/O.
package event

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tag relates an event to something in the domain, such as course:c1. Both parts
// are UTF-8; the key is not empty.
type Tag struct {
	Key   string
	Value string
}

// NewTag returns a tag.
func NewTag(key, value string) Tag { return Tag{Key: key, Value: value} }

// String returns the tag as people write it, key:value.
func (t Tag) String() string { return t.Key + ":" + t.Value }

// ID identifies an event across repeated appends. The zero ID means that the
// event has none. It is a UUID by convention; the store compares bytes.
type ID [16]byte

// ErrID: the text is not an ID.
var ErrID = errors.New("not an ID: want 32 hexadecimal digits, with or without hyphens")

// ParseID reads 32 hexadecimal digits, with hyphens anywhere between them.
func ParseID(s string) (id ID, err error) {
	digits, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(digits) != len(id) {
		return ID{}, fmt.Errorf("%w: %q", ErrID, s)
	}
	return ID(digits), nil
}

// IsZero reports whether there is no ID.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the ID in the form of a UUID.
func (id ID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Event is something that happened. Data and Metadata are bytes that the store
// does not interpret.
type Event struct {
	Type     string
	Tags     []Tag
	Data     []byte
	Metadata []byte
	ID       ID // zero: none, so that appending again adds another event
}

// HasTag reports whether the event has a tag.
func (e *Event) HasTag(t Tag) bool { return slices.Contains(e.Tags, t) }

// Equal reports whether two events have the same content. The order of tags is
// ignored, and empty data equal nil.
func (e *Event) Equal(o *Event) bool {
	if e.Type != o.Type || e.ID != o.ID || len(e.Tags) != len(o.Tags) ||
		!bytes.Equal(e.Data, o.Data) || !bytes.Equal(e.Metadata, o.Metadata) {
		return false
	}
	return !slices.ContainsFunc(e.Tags, func(t Tag) bool { return !o.HasTag(t) })
}

// Sequenced is a stored event. Positions are unique, begin at 1 and grow in the
// order of commits; there may be gaps.
type Sequenced struct {
	Position uint64
	Time     time.Time // when it was appended, in UTC, to the microsecond; never before that of a lower position
	Event
}
