package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store/event"
)

// sseType is the media type of server-sent events.
const sseType = "text/event-stream"

// heartbeat is the interval at which an idle stream of server-sent events sends
// a comment, so that proxies do not close it.
const heartbeat = 15 * time.Second

// subscribeBody is the body of a request to /v1/events/subscribe, and readBody
// the body of one to /v1/events or /v1/events/read.
type (
	subscribeBody struct {
		Query eventjson.Query `json:"query"`
		From  jsonuint.Uint   `json:"from"`
	}
	readBody struct {
		subscribeBody
		Since     *time.Time    `json:"since"`
		Until     *time.Time    `json:"until"`
		OnlyLast  bool          `json:"only_last"`
		Backwards bool          `json:"backwards"`
		Limit     jsonuint.Uint `json:"limit"`
	}
)

// readSelection reads the query of a request: the body of a POST, or the
// parameters of a GET, converted into a body.
func (h *Handler) readSelection(w *answer, r *http.Request, body any) error {
	if r.Method != http.MethodGet {
		return h.readJSON(w, r, body)
	}
	values, err := parameters(r)
	if err != nil {
		return err
	}
	members, item, tags := map[string]any{}, map[string]any{}, eventjson.Tags{}
	for name, list := range values {
		switch {
		case name == "type":
			item["types"] = list
		case name == "tag":
			for _, text := range list {
				key, value, ok := strings.Cut(text, ":")
				if !ok {
					return malformed("tag=%q: want key:value", text)
				}
				tags = append(tags, []string{key, value})
			}
			item["tags"] = tags
		case len(list) != 1 || name == "query":
			return malformed("parameter %q is unknown, or given %d times", name, len(list))
		case list[0] == "true" || list[0] == "false":
			members[name] = list[0] == "true"
		default:
			members[name] = list[0]
		}
	}
	if len(item) > 0 {
		members["query"] = map[string]any{"items": []any{item}}
	}
	return decodeParameters(members, body)
}

// eventsEnd is the last line of a read.
type eventsEnd struct {
	End struct {
		Count int            `json:"count"`
		Head  *jsonuint.Uint `json:"head,omitempty"` // up to which the store was looked at
	} `json:"end"`
}

// readEvents streams one JSON line for each event and one for the end. An error
// before the first line is a normal error response; a later error is the last
// line.
func (h *Handler) readEvents(w *answer, r *http.Request) error {
	var body readBody
	if err := h.readSelection(w, r, &body); err != nil {
		return err
	}
	q, err := body.Query.Query()
	if err != nil {
		return err
	}
	opts := event.ReadOptions{
		From: uint64(body.From), Since: service.TimeBound(body.Since), Until: service.TimeBound(body.Until),
		OnlyLast: body.OnlyLast, Backwards: body.Backwards, Limit: int(min(body.Limit, math.MaxInt)),
	}
	lines := h.lines(w, linesType)
	var end eventsEnd
	write := func(list []event.Sequenced) error {
		end.End.Count += len(list)
		if err := lines.addEvents(list); err != nil {
			return err
		}
		return lines.flush(flushBytes)
	}
	rest, head, err := h.service.Events().ReadBatches(r.Context(), q, opts, w.hold, write)
	if err == nil {
		err = write(rest)
	}
	if err != nil {
		return lines.fail(err)
	}
	end.End.Head = (*jsonuint.Uint)(head)
	return errors.Join(lines.add(end), lines.flush(0))
}

// subscribe streams events as they come, as JSON lines or server-sent events,
// until the client leaves or an error occurs, which is then the last line.
func (h *Handler) subscribe(w *answer, r *http.Request) error {
	var body subscribeBody
	if err := h.readSelection(w, r, &body); err != nil {
		return err
	}
	q, err := body.Query.Query()
	if err = cmp.Or(err, q.Validate()); err != nil {
		return err
	}
	lines := h.lines(w, linesType)
	lines.live = true
	if accepts(r, sseType) {
		lines.kind = sseType
		if err := lastEvent(r, &body); err != nil {
			return err
		}
	}
	if err := lines.send(); err != nil { // the head of the answer
		return err
	}
	write := func(list []event.Sequenced) error {
		if len(list) == 0 && lines.kind == sseType {
			lines.buf = append(lines.buf, ":\n\n"...)
		}
		if err := lines.addEvents(list); err != nil {
			return err
		}
		return lines.flush(0)
	}
	sub := service.Subscription{Protocol: "rest", Query: q, From: uint64(body.From), Ending: h.with.Ending, Idle: heartbeat, Hold: w.hold}
	return lines.fail(h.service.Events().Follow(r.Context(), sub, write))
}

// lastEvent makes a subscription begin after the last event that the client has
// received.
func lastEvent(r *http.Request, body *subscribeBody) error {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		return nil
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n == math.MaxUint64 {
		return malformed("Last-Event-ID %q: want a position", id)
	}
	body.From = jsonuint.Uint(n + 1)
	return nil
}

// accepts reports whether a client explicitly accepts a media type.
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

// addEvents adds events in the stream's format.
func (l *lines) addEvents(list []event.Sequenced) error {
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
