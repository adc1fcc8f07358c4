package client

import (
	"fmt"
	"time"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/store/event"
)

// eventMessages makes messages of events, with few allocations for all together. They
// share the memory of the events.
func eventMessages(events []event.Event) []*varvev1.Event {
	tags := 0
	for i := range events {
		tags += len(events[i].Tags)
	}
	all, list := make([]varvev1.Event, len(events)), make([]*varvev1.Event, len(events))
	tag, refs := make([]varvev1.Tag, tags), make([]*varvev1.Tag, tags)
	for i := range events {
		e, m := &events[i], &all[i]
		m.Type, m.Data, m.Metadata = e.Type, e.Data, e.Metadata
		if !e.ID.IsZero() {
			m.Id = e.ID[:]
		}
		n := len(e.Tags)
		setTags(refs, tag, e.Tags)
		m.Tags, tag, refs = refs[:n:n], tag[n:], refs[n:]
		list[i] = m
	}
	return list
}

func setTags(refs []*varvev1.Tag, to []varvev1.Tag, tags []event.Tag) {
	for i := range tags {
		to[i].Key, to[i].Value = tags[i].Key, tags[i].Value
		refs[i] = &to[i]
	}
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
		it := &q.Items[i]
		refs := make([]*varvev1.Tag, len(it.Tags))
		setTags(refs, make([]varvev1.Tag, len(it.Tags)), it.Tags)
		m.Items[i] = &varvev1.EventItem{Types: it.Types, Tags: refs}
	}
	return m
}

// micros returns a time as messages have it, nil when it is zero. Events have full
// microseconds, so what begins within one begins with the next.
func micros(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.Add(time.Microsecond - 1).UnixMicro()
	return &n
}

// sequenced returns the event of a message, which it shares memory with.
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
