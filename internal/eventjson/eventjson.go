// Package eventjson converts events and queries to and from JSON, for the
// commands and the service. Tags are pairs of key and value. Data and metadata
// that are valid JSON are embedded as JSON, others as base 64.
package eventjson

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/event"
)

// Event is a stored event, if it has a position.
type Event struct {
	Position jsonuint.Uint `json:"position,omitempty"`
	Time     string        `json:"time,omitempty"`
	New
}

// New is an event to be appended; the store sets position and time.
type New struct {
	ID             string          `json:"id,omitempty"`
	Type           string          `json:"type"`
	Tags           Tags            `json:"tags,omitempty"`
	Data           json.RawMessage `json:"data,omitempty"`
	DataBase64     []byte          `json:"data_base64,omitempty"`
	Metadata       json.RawMessage `json:"metadata,omitempty"`
	MetadataBase64 []byte          `json:"metadata_base64,omitempty"`
}

// Tags are tags as pairs of key and value.
type Tags [][]string

// Query is a query; without items it selects every event.
type Query struct {
	Items []Item `json:"items"`
}

// Item is one alternative of a query.
type Item struct {
	Types []string `json:"types"`
	Tags  Tags     `json:"tags"`
}

// Condition guards an append.
type Condition struct {
	Fail  Query         `json:"fail_if_events_match"`
	After jsonuint.Uint `json:"after"`
}

// Event converts the event. Errors wrap event.ErrInvalid.
func (e *New) Event() (ev event.Event, err error) {
	if e.Data != nil && e.DataBase64 != nil || e.Metadata != nil && e.MetadataBase64 != nil {
		return ev, fmt.Errorf("%w: the same bytes given as JSON and in base 64", event.ErrInvalid)
	}
	ev = event.Event{Type: e.Type, Data: e.Data, Metadata: e.Metadata}
	if ev.Tags, err = e.Tags.tags(); err != nil {
		return ev, err
	}
	if e.DataBase64 != nil {
		ev.Data = e.DataBase64
	}
	if e.MetadataBase64 != nil {
		ev.Metadata = e.MetadataBase64
	}
	if e.ID != "" {
		if ev.ID, err = event.ParseID(e.ID); err != nil {
			return ev, fmt.Errorf("%w: %w", event.ErrInvalid, err)
		}
	}
	return ev, nil
}

// Of converts a stored event.
func Of(ev *event.Sequenced) Event {
	e := Event{Position: jsonuint.Uint(ev.Position), Time: ev.Time.Format("2006-01-02T15:04:05.000000Z"), New: New{Type: ev.Type}}
	if !ev.ID.IsZero() {
		e.ID = ev.ID.String()
	}
	for _, t := range ev.Tags {
		e.Tags = append(e.Tags, []string{t.Key, t.Value})
	}
	e.Data, e.DataBase64 = jsonOrBytes(ev.Data)
	e.Metadata, e.MetadataBase64 = jsonOrBytes(ev.Metadata)
	return e
}

// jsonOrBytes returns b as JSON if it is a JSON document in UTF-8, else as
// bytes. json.Valid does not check for UTF-8.
func jsonOrBytes(b []byte) (json.RawMessage, []byte) {
	if json.Valid(b) && utf8.Valid(b) {
		return b, nil
	}
	return nil, b
}

func (t Tags) tags() (list []event.Tag, err error) {
	for i, pair := range t {
		if len(pair) != 2 {
			return nil, fmt.Errorf("%w: tag %d: want a key and a value, got %d texts", event.ErrInvalid, i+1, len(pair))
		}
		list = append(list, event.NewTag(pair[0], pair[1]))
	}
	return list, nil
}

// Query converts the query. Errors wrap event.ErrInvalid; the query is not
// validated otherwise.
func (q *Query) Query() (all event.Query, err error) {
	for i, item := range q.Items {
		tags, err := item.Tags.tags()
		if err != nil {
			return all, fmt.Errorf("item %d: %w", i+1, err)
		}
		all.Items = append(all.Items, event.Item{Types: item.Types, Tags: tags})
	}
	return all, nil
}

// Condition converts the condition; nil gives nil.
func (c *Condition) Condition() (*event.Condition, error) {
	if c == nil {
		return nil, nil
	}
	q, err := c.Fail.Query()
	if err != nil {
		return nil, fmt.Errorf("condition: %w", err)
	}
	return &event.Condition{FailIfEventsMatch: q, After: uint64(c.After)}, nil
}
