package rest

import (
	"fmt"
	"net/http"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/event"
)

// appendBody is the body of a POST to /v1/events.
type appendBody struct {
	Events    []eventjson.New      `json:"events"`
	Condition *eventjson.Condition `json:"condition"`
}

// append converts the body into events and a condition.
func (b *appendBody) append() ([]event.Event, *event.Condition, error) {
	events := make([]event.Event, len(b.Events))
	for i := range b.Events {
		var err error
		if events[i], err = b.Events[i].Event(); err != nil {
			return nil, nil, fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
	}
	cond, err := b.Condition.Condition()
	return events, cond, err
}

func (h *Handler) append(w *answer, r *http.Request) error {
	var body appendBody
	if err := h.readJSON(w, r, &body); err != nil {
		return err
	}
	events, cond, err := body.append()
	if err != nil {
		return err
	}
	positions, err := h.service.Events().Append(r.Context(), events, cond)
	if err != nil {
		return err
	}
	return sendPositions(w, positions)
}

func sendPositions(w http.ResponseWriter, positions []uint64) error {
	list := make([]jsonuint.Uint, len(positions))
	for i, p := range positions {
		list[i] = jsonuint.Uint(p)
	}
	return sendJSON(w, http.StatusOK, map[string][]jsonuint.Uint{"positions": list})
}

func (h *Handler) head(w *answer, r *http.Request) error {
	head, err := h.service.Events().Head(r.Context())
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, map[string]jsonuint.Uint{"head": jsonuint.Uint(head)})
}

func (h *Handler) checkpoint(w *answer, r *http.Request) error {
	at, err := h.service.Events().Checkpoint(r.Context(), r.PathValue("consumer"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, map[string]jsonuint.Uint{"position": jsonuint.Uint(at)})
}

// advanceBody is the body of a POST to /v1/events/checkpoints/{consumer}.
type advanceBody struct {
	From jsonuint.Uint `json:"from"`
	To   jsonuint.Uint `json:"to"`
	appendBody
}

// advance moves a consumer and appends.
func (h *Handler) advance(w *answer, r *http.Request) error {
	var body advanceBody
	if err := h.readJSON(w, r, &body); err != nil {
		return err
	}
	events, cond, err := body.append()
	if err != nil {
		return err
	}
	c := event.Checkpoint{Consumer: r.PathValue("consumer"), From: uint64(body.From), To: uint64(body.To)}
	positions, err := h.service.Events().Advance(r.Context(), c, events, cond)
	if err != nil {
		return err
	}
	return sendPositions(w, positions)
}
