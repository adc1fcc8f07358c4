package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

const linesType = "application/x-ndjson"

// A stream is buffered up to flushBytes and then sent. A buffer that has grown
// beyond keepBytes, for a large entity or event, is dropped.
const (
	flushBytes = 32 << 10
	keepBytes  = 64 << 10
)

// queryBody is the body of a POST to /v1/query.
type queryBody struct {
	Query  string         `json:"query"`
	Limit  jsonuint.Uint  `json:"limit"`
	Cursor string         `json:"cursor"`
	Block  *jsonuint.Uint `json:"block"`
	Order  orderBody      `json:"order"`
}

// orderBody is the sort order: an attribute, or a list of them.
type orderBody []columnBody

type columnBody struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Descending bool   `json:"descending"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *orderBody) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	var list []columnBody
	var into any = &list
	if text[0] != '[' {
		list = make([]columnBody, 1)
		into = &list[0]
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return errors.New("order: " + err.Error()) // its offset is not one of the body
	}
	*b = list
	return nil
}

func (b *queryBody) query() (*service.Query, error) {
	q := &service.Query{Text: b.Query, Limit: int(min(b.Limit, math.MaxInt)), Cursor: store.Cursor(b.Cursor), Block: (*uint64)(b.Block)}
	for _, c := range b.Order {
		o := store.Order{Name: c.Name, Desc: c.Descending}
		switch c.Kind {
		case "":
		case "string":
			o.Kind = entity.String
		case "numeric":
			o.Kind = entity.Numeric
		default:
			return nil, fmt.Errorf("%w: order of kind %q: want string or numeric", store.ErrInvalid, c.Kind)
		}
		q.Order = append(q.Order, o)
	}
	return q, nil
}

// The last line of a stream is an end or an error.
type (
	endLine struct {
		End end `json:"end"`
	}
	end struct {
		Count  int           `json:"count"`
		Block  jsonuint.Uint `json:"block"`
		Cursor string        `json:"cursor,omitempty"`
	}
	errorLine struct {
		Error problem `json:"error"`
	}
)

// query streams one JSON line for each entity and one for the end. An error
// before the first line is a normal error response; a later error is the last
// line.
func (h *Handler) query(w *answer, r *http.Request) error {
	var body queryBody
	if err := h.readJSON(w, r, &body); err != nil {
		return err
	}
	q, err := body.query()
	if err != nil {
		return err
	}
	lines := h.lines(w, linesType)
	page, err := h.service.Query(r.Context(), q, w.hold, func(e *entity.Entity) error {
		lines.buf = append(lines.buf, `{"entity":`...)
		lines.buf = append(appendEntity(lines.buf, e), "}\n"...)
		return lines.flush(flushBytes)
	})
	if err != nil {
		return lines.fail(err)
	}
	err = lines.add(endLine{end{Count: page.Count, Block: jsonuint.Uint(page.Block), Cursor: string(page.Cursor)}})
	return errors.Join(err, lines.flush(0))
}

// lines buffers a stream and sends it in parts, each within a time limit: a
// long stream may take long, but a client that stops receiving is cut off.
type lines struct {
	to    *answer
	kind  string // content type
	live  bool   // parts may be sent at any time, as in a subscription
	buf   []byte
	begun bool
}

// lines begins a stream in answer to a request, whose body has been read.
func (h *Handler) lines(w *answer, kind string) *lines {
	// Remove the deadline for reading the body, because it would end the
	// stream.
	_ = w.control.SetReadDeadline(time.Time{})
	return &lines{to: w, kind: kind}
}

func (l *lines) add(v any) error {
	text, err := json.Marshal(v)
	l.buf = append(append(l.buf, text...), '\n')
	return err
}

// flush sends the buffered lines if they have more than least bytes.
func (l *lines) flush(least int) error {
	if len(l.buf) <= least {
		return nil
	}
	return l.send()
}

func (l *lines) send() error {
	if l.live {
		// Remove the deadline afterwards: over HTTP/2 it would end the stream
		// if it passes between two parts.
		defer func() { _ = l.to.control.SetWriteDeadline(time.Time{}) }()
	}
	if !l.begun {
		l.begun = true
		l.to.Header().Set("Content-Type", l.kind)
	}
	_, err := l.to.Write(l.buf)
	if l.buf = l.buf[:0]; cap(l.buf) > keepBytes {
		l.buf = nil
	}
	if err == nil {
		err = l.to.control.Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", service.ErrSlow, err)
	}
	return nil
}

// fail ends a stream with an error: before the first line as a normal error
// response, and later as the last line, because the status has been sent. The
// error is counted in both cases.
func (l *lines) fail(err error) error {
	if !l.begun && len(l.buf) == 0 || errors.Is(err, service.ErrSlow) {
		return err
	}
	p := problemOf(service.Classify(err), err)
	if l.kind != sseType {
		return errors.Join(err, l.add(errorLine{p}), l.flush(0))
	}
	text, failed := json.Marshal(p)
	l.buf = append(append(append(l.buf, "event: problem\ndata: "...), text...), "\n\n"...)
	return errors.Join(err, failed, l.flush(0))
}
