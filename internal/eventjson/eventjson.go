// Package eventjson is events and queries as JSON, as the commands and the service have
// them. Tags are pairs of key and value. Data and metadata that are JSON stand as they
// are, and others in base 64.
package eventjson

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/event"
)

// Event is an event, stored when it has a position.
type Event struct {
	Position jsonuint.Uint `json:"position,omitempty"`
	Time     string        `json:"time,omitempty"`
	New
}

// New is an event that is to be appended: the store gives it position and time.
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

// Event returns the event. Errors wrap event.ErrInvalid.
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

// Of returns a stored event.
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

// jsonOrBytes returns bytes that are JSON as such. A document of JSON is UTF-8, which
// json.Valid does not ask for.
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

// Query returns the query. Errors wrap event.ErrInvalid; it is not validated otherwise.
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

// Condition returns the condition, nil of nil.
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
