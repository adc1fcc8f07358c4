package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/internal/service"
)

// buffers are for bodies and answers. One that has become large is dropped.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keepBuffer = 64 << 10

func getBuffer() *bytes.Buffer {
	b, ok := buffers.Get().(*bytes.Buffer)
	if !ok {
		return new(bytes.Buffer)
	}
	b.Reset()
	return b
}

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= keepBuffer {
		buffers.Put(b)
	}
}

// bodyError is a fault in a body of JSON.
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

// bodyAt returns the error of a fault at a byte of a body.
func bodyAt(body []byte, offset int64, err error) error {
	before := body[:min(max(offset, 0), int64(len(body)))]
	return fmt.Errorf("%w: %w", service.ErrMalformed, &bodyError{
		line:   1 + bytes.Count(before, []byte("\n")),
		column: len(before) - bytes.LastIndexByte(before, '\n'),
		err:    err,
	})
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

// readBody reads the body into a buffer. The caller puts the buffer back.
func (h *Handler) readBody(w *answer, r *http.Request) (*bytes.Buffer, error) {
	if r.ContentLength > h.opts.MaxBody {
		return nil, fmt.Errorf("%w: a body of %d bytes, at most %d", service.ErrTooLarge, r.ContentLength, h.opts.MaxBody)
	}
	buffer := getBuffer()
	err := h.receive(w, r, buffer)
	if w.read = err == nil; w.read {
		return buffer, nil
	}
	putBuffer(buffer)
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

// receive reads the body while its time lasts, and its memory while no other request waits for
// that.
func (h *Handler) receive(w *answer, r *http.Request, buffer *bytes.Buffer) error {
	w.reading.Store(true)
	defer w.reading.Store(false)
	defer w.hold.Work()
	defer context.AfterFunc(h.opts.Ending, func() { _ = w.control.SetReadDeadline(time.Now().Add(h.opts.DrainTimeout)) })()
	return w.hold.Read(r.Context(), buffer, http.MaxBytesReader(w.ResponseWriter, r.Body, h.opts.MaxBody), r.ContentLength)
}

// readJSON reads a body of JSON into what dst points to.
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
	defer putBuffer(body)
	return decodeJSON(body.Bytes(), dst)
}

// decodeJSON reads one JSON value and says where it is wrong. Text that is not
// UTF-8 is refused, since decoding would change it.
func decodeJSON(body []byte, dst any) error {
	if !utf8.Valid(body) {
		return bodyAt(body, int64(invalidUTF8(body)), errors.New("not UTF-8"))
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(dst); err != nil {
		return jsonError(body, dec, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bodyAt(body, dec.InputOffset(), errors.New("something follows the value"))
	}
	if bytes.Contains(body, []byte("null")) {
		dec = json.NewDecoder(bytes.NewReader(body))
		if strayNull(dec, nil, json.Delim('[')) {
			return bodyAt(body, dec.InputOffset()-1, errors.New("null, where a text, a number or an object is wanted"))
		}
	}
	return nil
}

// strayNull reads a value, of a name and in a list or a member, and tells whether it ends
// at a null that is an item of a list, or an attribute, or all. Null as a member says
// that the member is left out, but these would become an empty text or a zero, which
// nobody has asked for. What an event holds may have any.
func strayNull(dec *json.Decoder, name, in any) bool {
	list := json.Delim('[')
	token, err := dec.Token()
	if err != nil || token == nil {
		return in == list || in == "string_attributes" || in == "numeric_attributes"
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return false
	}
	for dec.More() {
		var child, within any = nil, list
		if delim == '{' {
			within = name
			if child, err = dec.Token(); err != nil {
				return false // it was decoded before
			}
		}
		if in == list && (child == "data" || child == "metadata") {
			var skipped json.RawMessage
			if dec.Decode(&skipped) != nil {
				return false
			}
			continue
		}
		if strayNull(dec, child, within) {
			return true
		}
	}
	_, err = dec.Token()
	return err != nil
}

func invalidUTF8(body []byte) int {
	for i := 0; i < len(body); {
		r, n := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(body)
}

// jsonError finds where the decoder stopped.
func jsonError(body []byte, dec *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var number *jsonuint.Error
	switch {
	case errors.Is(err, io.EOF):
		return bodyAt(body, 0, errors.New("the body is empty"))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return bodyAt(body, int64(len(body)), errors.New("the body ends within a value"))
	case errors.As(err, &syntax):
		return bodyAt(body, syntax.Offset-1, err)
	case errors.As(err, &number):
		return bodyAt(body, endOf(body, number.Literal)-1, err)
	case errors.As(err, &kind):
		return bodyAt(body, kind.Offset-1, fmt.Errorf("%s of JSON where %q wants %s", kind.Value, kind.Field, kind.Type))
	}
	return bodyAt(body, dec.InputOffset(), err)
}

// endOf returns where a value of a body ends, given its text.
func endOf(body []byte, literal string) int64 {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for {
		_, err := dec.Token()
		end := dec.InputOffset()
		if err != nil || bytes.HasSuffix(body[:end], []byte(literal)) {
			return end
		}
	}
}
