package client

import (
	"fmt"
	"time"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/store/event"
)

// eventMessages converts events into messages, which share their memory.
func eventMessages(events []event.Event) []*varvev1.Event {
	list := make([]*varvev1.Event, len(events))
	for i := range events {
		e := &events[i]
		list[i] = &varvev1.Event{Type: e.Type, Data: e.Data, Metadata: e.Metadata, Tags: tagMessages(e.Tags)}
		if !e.ID.IsZero() {
			list[i].Id = e.ID[:]
		}
	}
	return list
}

func tagMessages(tags []event.Tag) []*varvev1.Tag {
	list := make([]*varvev1.Tag, len(tags))
	for i := range tags {
		list[i] = &varvev1.Tag{Key: tags[i].Key, Value: tags[i].Value}
	}
	return list
}

func conditionMessage(cond *event.Condition) (*varvev1.Condition, error) {
	if cond == nil {
		return nil, nil
	}
	if err := cond.FailIfEventsMatch.Validate(); err != nil {
		return nil, fmt.Errorf("condition: %w", err)
	}
	return &varvev1.Condition{FailIfEventsMatch: queryMessage(cond.FailIfEventsMatch), After: cond.After}, nil
}

func queryMessage(q event.Query) *varvev1.EventQuery {
	m := &varvev1.EventQuery{Items: make([]*varvev1.EventItem, len(q.Items))}
	for i := range q.Items {
		m.Items[i] = &varvev1.EventItem{Types: q.Items[i].Types, Tags: tagMessages(q.Items[i].Tags)}
	}
	return m
}

// micros converts a time for messages; nil when it is zero. It rounds up,
// because events have whole microseconds.
func micros(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.Add(time.Microsecond - 1).UnixMicro()
	return &n
}

// sequenced converts a message into an event, which shares its memory.
func sequenced(m *varvev1.StoredEvent) event.Sequenced {
	from := m.GetEvent()
	e := event.Sequenced{
		Position: m.GetPosition(), Time: time.UnixMicro(m.GetTime()).UTC(),
		Event: event.Event{Type: from.GetType(), Data: from.GetData(), Metadata: from.GetMetadata()},
	}
	copy(e.ID[:], from.GetId())
	if tags := from.GetTags(); len(tags) > 0 {
		e.Tags = make([]event.Tag, len(tags))
		for i, t := range tags {
			e.Tags[i] = event.NewTag(t.GetKey(), t.GetValue())
		}
	}
	return e
}
