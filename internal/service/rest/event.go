package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store"
)

// appendBody is what a POST to /v1/events holds.
type appendBody struct {
	Events    []eventjson.Event    `json:"events"`
	Condition *eventjson.Condition `json:"condition"`
}

func (b *appendBody) events() ([]store.Event, error) {
	events := make([]store.Event, len(b.Events))
	for i := range b.Events {
		var err error
		if events[i], err = b.Events[i].Event(); err != nil {
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
	cond, err := body.Condition.Condition()
	if err != nil {
		return err
	}
	positions, err := h.service.Events().Append(r.Context(), events, cond)
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

func (h *Handler) head(w http.ResponseWriter, r *http.Request) error {
	head, err := h.service.Events().Head(r.Context())
	if err != nil {
		return err
	}
	text := append(jsonuint.Append([]byte(`{"head":`), head), "}\n"...)
	return send(w, http.StatusOK, jsonType, text)
}
