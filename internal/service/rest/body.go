package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/strictjson"
)

// bodyError is a fault in a JSON body.
type bodyError struct {
	line, column int // from 1, in bytes
	err          error
}

func (e *bodyError) Error() string {
	return fmt.Sprintf("line %d, column %d: %v", e.line, e.column, e.err)
}

func (e *bodyError) Unwrap() error { return e.err }

// malformed returns an error that wraps ErrMalformed.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", service.ErrMalformed, fmt.Sprintf(format, args...))
}

// mediaType returns the type of a body without its parameters.
func mediaType(r *http.Request) (string, error) {
	text := r.Header.Get("Content-Type")
	if text == jsonType || text == "" {
		return text, nil
	}
	kind, _, err := mime.ParseMediaType(text)
	if err != nil {
		return "", fmt.Errorf("%w: Content-Type %q: %w", service.ErrMediaType, text, err)
	}
	return kind, nil
}

// readBody reads the body.
func (h *Handler) readBody(w *answer, r *http.Request) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return nil, fmt.Errorf("%w: Content-Encoding %q: send the body as it is", service.ErrMediaType, coding)
	}
	if r.ContentLength > h.maxBody {
		return nil, fmt.Errorf("%w: a body of %d bytes, at most %d", service.ErrTooLarge, r.ContentLength, h.maxBody)
	}
	var body bytes.Buffer
	// Reading has a time limit, and may be cut off when another request waits
	// for its memory.
	w.reading.Store(true)
	stop := context.AfterFunc(h.with.Ending, func() { _ = w.control.SetReadDeadline(time.Now().Add(h.with.Timeouts.Drain / 4)) })
	err := w.hold.Read(r.Context(), &body, http.MaxBytesReader(w.ResponseWriter, r.Body, h.maxBody), r.ContentLength)
	stop()
	w.hold.Work()
	w.reading.Store(false)
	if w.read = err == nil; w.read {
		return body.Bytes(), nil
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w: a body of more than %d bytes", service.ErrTooLarge, large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%w: the body did not come in time", service.ErrSlow)
	case errors.Is(err, quota.ErrFull), r.Context().Err() != nil:
		return nil, fmt.Errorf("body: %w", err)
	}
	return nil, malformed("the body ends early: %v", err)
}

// readJSON decodes a JSON body into the value that dst points to.
func (h *Handler) readJSON(w *answer, r *http.Request, dst any) error {
	kind, err := mediaType(r)
	if err != nil {
		return err
	}
	if kind != jsonType {
		return fmt.Errorf("%w: %q, want %s", service.ErrMediaType, kind, jsonType)
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return err
	}
	return decodeJSON(body, dst, func(memory int64) error { return w.decoded.Take(r.Context(), memory) })
}

// maxDecoded is the maximum memory of decoded JSON. It is less than for gRPC,
// because a list grows while JSON is decoded, and its smaller copies remain as
// garbage.
const maxDecoded = service.MaxDecoded / 2

// decodeJSON decodes one JSON value; an error includes the position. Before it
// decodes, it calls admit with the memory that the value will take.
func decodeJSON(body []byte, dst any, admit func(memory int64) error) error {
	err := strictjson.DecodeWithin(body, dst, &strictjson.Limits{
		List: service.MaxList, Members: service.MaxMembers, Memory: maxDecoded, Admit: admit, TooLarge: service.ErrTooLarge,
	})
	if errors.Is(err, service.ErrTooLarge) {
		return fmt.Errorf("body: %w", err)
	}
	if place := new(strictjson.Error); errors.As(err, &place) {
		before := body[:min(max(place.Offset, 0), len(body))]
		return fmt.Errorf("%w: %w", service.ErrMalformed, &bodyError{
			line:   1 + bytes.Count(before, []byte("\n")),
			column: len(before) - bytes.LastIndexByte(before, '\n'),
			err:    place.Err,
		})
	}
	return err
}
