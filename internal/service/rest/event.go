package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// appendBody is what a POST to /v1/events holds.
type appendBody struct {
	Events    []eventBody    `json:"events"`
	Condition *conditionBody `json:"condition"`
}

// eventBody is an event as varve events has it: tags are pairs of key and value,
// and data that is not JSON comes in base 64.
type eventBody struct {
	ID             string          `json:"id"`
	Type           string          `json:"type"`
	Tags           [][]string      `json:"tags"`
	Data           json.RawMessage `json:"data"`
	DataBase64     []byte          `json:"data_base64"`
	Metadata       json.RawMessage `json:"metadata"`
	MetadataBase64 []byte          `json:"metadata_base64"`
}

type conditionBody struct {
	Fail struct {
		Items []struct {
			Types []string   `json:"types"`
			Tags  [][]string `json:"tags"`
		} `json:"items"`
	} `json:"fail_if_events_match"`
	After jsonuint.Uint `json:"after"`
}

func (b *eventBody) event() (ev store.Event, err error) {
	if b.Data != nil && b.DataBase64 != nil || b.Metadata != nil && b.MetadataBase64 != nil {
		return ev, fmt.Errorf("%w: the same bytes given as JSON and in base 64", store.ErrInvalid)
	}
	ev = store.Event{Type: b.Type, Data: b.Data, Metadata: b.Metadata}
	if ev.Tags, err = tags(b.Tags); err != nil {
		return ev, err
	}
	if b.DataBase64 != nil {
		ev.Data = b.DataBase64
	}
	if b.MetadataBase64 != nil {
		ev.Metadata = b.MetadataBase64
	}
	if b.ID != "" {
		if ev.ID, err = event.ParseID(b.ID); err != nil {
			return ev, fmt.Errorf("%w: %w", store.ErrInvalid, err)
		}
	}
	return ev, nil
}

func tags(pairs [][]string) ([]store.Tag, error) {
	var list []store.Tag
	for i, pair := range pairs {
		if len(pair) != 2 {
			return nil, fmt.Errorf("%w: tag %d: want a key and a value, got %d texts", store.ErrInvalid, i+1, len(pair))
		}
		list = append(list, event.NewTag(pair[0], pair[1]))
	}
	return list, nil
}

func (b *conditionBody) condition() (*store.Condition, error) {
	if b == nil {
		return nil, nil
	}
	cond := &store.Condition{After: uint64(b.After)}
	for i, item := range b.Fail.Items {
		list, err := tags(item.Tags)
		if err != nil {
			return nil, fmt.Errorf("item %d of the condition: %w", i+1, err)
		}
		cond.FailIfEventsMatch.Items = append(cond.FailIfEventsMatch.Items, store.EventItem{Types: item.Types, Tags: list})
	}
	return cond, nil
}

func (b *appendBody) events() ([]store.Event, error) {
	events := make([]store.Event, len(b.Events))
	for i := range b.Events {
		var err error
		if events[i], err = b.Events[i].event(); err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
	}
	return events, nil
}

func (h *Handler) append(w http.ResponseWriter, r *http.Request) error {
	var body appendBody
	if err := h.readJSON(w, r, &body); err != nil {
		return err
	}
	events, err := body.events()
	if err != nil {
		return err
	}
	cond, err := body.Condition.condition()
	if err != nil {
		return err
	}
	positions, err := h.service.Append(r.Context(), events, cond)
	if err != nil {
		return err
	}
	text, err := json.Marshal(struct {
		Positions []uint64 `json:"positions"`
	}{positions})
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, jsonType, append(text, '\n'))
}
