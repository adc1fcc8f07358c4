package rest

import (
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// sseType is that of server-sent events.
const sseType = "text/event-stream"

// heartbeat is how often a stream of server-sent events that has nothing to say shows
// proxies that it lives.
const heartbeat = 15 * time.Second

// selection is which events are asked for.
type selection struct {
	q    store.EventQuery
	opts store.EventReadOptions
}

// readBody is what a POST to /v1/events/read holds, subscribeBody one to
// /v1/events/subscribe.
type (
	subscribeBody struct {
		Query eventjson.Query `json:"query"`
		From  jsonuint.Uint   `json:"from"`
	}
	readBody struct {
		Query     eventjson.Query `json:"query"`
		From      jsonuint.Uint   `json:"from"`
		Since     time.Time       `json:"since"`
		Until     time.Time       `json:"until"`
		OnlyLast  bool            `json:"only_last"`
		Backwards bool            `json:"backwards"`
		Limit     jsonuint.Uint   `json:"limit"`
	}
)

// readSelection reads what a request asks for, of the body of a POST or the parameters of a GET.
func (h *Handler) readSelection(w *answer, r *http.Request) (s selection, err error) {
	if r.Method == http.MethodGet {
		return selectionOf(r, "from", "since", "until", "only_last", "backwards", "limit")
	}
	var body readBody
	if err := h.readJSON(w, r, &body); err != nil {
		return s, err
	}
	s.opts = store.EventReadOptions{
		From: uint64(body.From), Since: body.Since, Until: body.Until,
		OnlyLast: body.OnlyLast, Backwards: body.Backwards, Limit: limitOf(uint64(body.Limit)),
	}
	s.q, err = body.Query.Query()
	return s, err
}

func (h *Handler) subscribeSelection(w *answer, r *http.Request) (s selection, err error) {
	if r.Method == http.MethodGet {
		return selectionOf(r, "from")
	}
	var body subscribeBody
	if err := h.readJSON(w, r, &body); err != nil {
		return s, err
	}
	s.opts.From = uint64(body.From)
	s.q, err = body.Query.Query()
	return s, err
}

// limitOf returns a limit as an option, in which more than fit are all.
func limitOf(n uint64) int { return int(min(n, math.MaxInt)) }

// selectionOf reads parameters: those of an item of a query, and others that are known.
func selectionOf(r *http.Request, known ...string) (s selection, err error) {
	values, err := parameters(r)
	if err != nil {
		return s, err
	}
	item := store.EventItem{Types: values["type"]}
	for _, text := range values["tag"] {
		key, value, ok := strings.Cut(text, ":")
		if !ok {
			return s, malformed("tag=%q: want key:value", text)
		}
		item.Tags = append(item.Tags, event.NewTag(key, value))
	}
	if len(item.Types)+len(item.Tags) > 0 {
		s.q.Items = []store.EventItem{item}
	}
	for name, list := range values {
		switch {
		case name == "type" || name == "tag":
			continue
		case !slices.Contains(known, name):
			err = malformed("unknown parameter %q; known are type, tag, %s", name, strings.Join(known, ", "))
		case len(list) != 1:
			err = malformed("parameter %q is given %d times", name, len(list))
		default:
			err = setOption(&s.opts, name, list[0])
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// setOption sets an option of a read from a parameter.
func setOption(o *store.EventReadOptions, name, text string) error {
	var err error
	wanted := "true or false"
	switch name {
	case "from", "limit":
		var n uint64
		wanted = "a number from 0 to 2^64-1"
		n, err = strconv.ParseUint(text, 10, 64)
		if name == "from" {
			o.From = n
		} else {
			o.Limit = limitOf(n)
		}
	case "since", "until":
		var t time.Time
		wanted = "a time such as 2026-01-02T15:04:05Z"
		t, err = time.Parse(time.RFC3339, text)
		if name == "since" {
			o.Since = t
		} else {
			o.Until = t
		}
	case "only_last":
		o.OnlyLast, err = strconv.ParseBool(text)
	case "backwards":
		o.Backwards, err = strconv.ParseBool(text)
	}
	if err != nil {
		return malformed("%s=%q: want %s", name, text, wanted)
	}
	return nil
}

// eventsEnd is the last line of a read.
type eventsEnd struct {
	End struct {
		Count int            `json:"count"`
		Head  *jsonuint.Uint `json:"head,omitempty"` // up to which the store was looked at
	} `json:"end"`
}

// readEvents streams one line of JSON for each event and one for the end. An error before the
// first line is an answer of its own; a later one is the last line.
func (h *Handler) readEvents(w *answer, r *http.Request) error {
	s, err := h.readSelection(w, r)
	if err != nil {
		return err
	}
	lines := h.lines(w, linesType)
	var end eventsEnd
	write := func(list []store.SequencedEvent) error {
		end.End.Count += len(list)
		if err := lines.addEvents(list); err != nil {
			return err
		}
		return lines.flush(flushBytes)
	}
	rest, head, err := h.service.Events().ReadBatches(r.Context(), s.q, s.opts, w.hold, write)
	if err == nil {
		err = write(rest)
	}
	if err != nil {
		return lines.fail(err)
	}
	end.End.Head = (*jsonuint.Uint)(head)
	return errors.Join(lines.add(end), lines.flush(0))
}

// subscribe streams events as they come, as lines of JSON or server-sent events, until
// the client leaves or an error ends it, which is the last line then.
func (h *Handler) subscribe(w *answer, r *http.Request) error {
	s, err := h.subscribeSelection(w, r)
	if err != nil {
		return err
	}
	if err := s.q.Validate(); err != nil {
		return err
	}
	lines := h.lines(w, linesType)
	lines.live = true
	if accepts(r, sseType) {
		lines.kind = sseType
		if err := lastEvent(r, &s); err != nil {
			return err
		}
	}
	if err := lines.begin(); err != nil {
		return err
	}
	write := func(list []store.SequencedEvent) error {
		if len(list) == 0 && lines.kind == sseType {
			lines.buf = append(lines.buf, ":\n\n"...)
		}
		if err := lines.addEvents(list); err != nil {
			return err
		}
		return lines.flush(0)
	}
	sub := service.Subscription{Protocol: "rest", Query: s.q, From: s.opts.From, Ending: h.opts.Ending, Idle: heartbeat, Hold: w.hold}
	return lines.fail(h.service.Events().Follow(r.Context(), sub, write))
}

// lastEvent goes on after the event that the client of server-sent events has had last.
func lastEvent(r *http.Request, s *selection) error {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		return nil
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n == math.MaxUint64 {
		return malformed("Last-Event-ID %q: want a position", id)
	}
	s.opts.From = n + 1
	return nil
}

// accepts tells whether a client names a media type among those that it takes.
func accepts(r *http.Request, want string) bool {
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if q, num := strconv.ParseFloat(params["q"], 64); err == nil && kind == want && (num != nil || q > 0) {
				return true
			}
		}
	}
	return false
}

// addEvents adds events in the form of the stream.
func (l *lines) addEvents(list []store.SequencedEvent) error {
	for i := range list {
		text, err := json.Marshal(eventjson.Of(&list[i]))
		if err != nil {
			return err
		}
		if l.kind == sseType {
			l.buf = strconv.AppendUint(append(l.buf, "id: "...), list[i].Position, 10)
			l.buf = append(append(append(l.buf, "\ndata: "...), text...), "\n\n"...)
			continue
		}
		l.buf = append(append(append(l.buf, `{"event":`...), text...), "}\n"...)
	}
	return nil
}
