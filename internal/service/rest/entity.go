package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/strictjson"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// octets is the content type for a payload without one.
const octets = "application/octet-stream"

// putBody is the JSON body of a PUT.
type putBody struct {
	ContentType string            `json:"content_type"`
	Payload     []byte            `json:"payload"` // in base 64
	Strings     map[string]string `json:"string_attributes"`
	Owner       *string           `json:"owner"`

	Numbers  map[string]jsonuint.Uint `json:"numeric_attributes"`
	Lifetime *jsonuint.Uint           `json:"lifetime"` // blocks
}

// put converts a body into a write.
func (b *putBody) put(key entity.Key) (*service.Put, error) {
	p := &service.Put{
		Key: key, ContentType: b.ContentType, Payload: b.Payload, Lifetime: (*uint64)(b.Lifetime),
		StringAttributes: b.Strings, NumericAttributes: jsonuint.Map(b.Numbers),
	}
	if b.Owner == nil {
		return p, nil
	}
	owner, err := entity.ParseAddress(*b.Owner)
	if err != nil {
		return nil, fmt.Errorf("%w: owner: %w", store.ErrInvalid, err)
	}
	p.Owner = &owner
	return p, nil
}

// rawPut converts the parameters of a request whose body is the payload into
// the equivalent JSON body, without the payload. s.NAME=text and n.NAME=number
// are attributes.
func rawPut(values url.Values) (b putBody, err error) {
	members, texts, numbers := map[string]any{}, map[string]string{}, map[string]string{}
	for name, list := range values {
		if len(list) != 1 {
			return b, malformed("parameter %q is given %d times", name, len(list))
		}
		switch kind, attribute, ok := strings.Cut(name, "."); {
		case ok && kind == "s":
			texts[attribute] = list[0]
		case ok && kind == "n":
			numbers[attribute] = list[0]
		case name == "owner", name == "lifetime":
			members[name] = list[0]
		default:
			return b, malformed("unknown parameter %q; known are owner, lifetime, s.NAME and n.NAME", name)
		}
	}
	members["string_attributes"], members["numeric_attributes"] = texts, numbers
	err = decodeParameters(members, &b)
	return b, err
}

// decodeParameters decodes parameters as the equivalent JSON body.
func decodeParameters(members map[string]any, dst any) error {
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	err = strictjson.Decode(text, dst)
	if place := new(strictjson.Error); errors.As(err, &place) {
		return malformed("parameters: %v", place.Err)
	}
	return err
}

// pathKey parses the key in a path.
func pathKey(r *http.Request) (entity.Key, error) {
	key, err := entity.ParseKey(r.PathValue("key"))
	if err != nil {
		return key, fmt.Errorf("%w: %w", service.ErrMalformed, err)
	}
	return key, nil
}

// parameters parses the parameters of a request strictly.
func parameters(r *http.Request) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, malformed("parameters: %v", err)
	}
	for name, list := range values {
		if !utf8.ValidString(name) || !utf8.ValidString(strings.Join(list, " ")) { // as JSON it would be other text
			return nil, malformed("parameter %q is not UTF-8", name)
		}
	}
	return values, nil
}

// noParameters refuses parameters where there are none, so that a client
// notices that they have no effect.
func noParameters(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	return malformed("there are no parameters here; %s/payload takes and gives a payload alone, and what belongs to it as parameters", r.URL.Path)
}

// readPut reads a put from a JSON document.
func (h *Handler) readPut(w *answer, r *http.Request, key entity.Key) (*service.Put, error) {
	if err := noParameters(r); err != nil {
		return nil, err
	}
	var body putBody
	if err := h.readJSON(w, r, &body); err != nil {
		return nil, err
	}
	return body.put(key)
}

// readPayload reads a put whose body is the payload itself.
func (h *Handler) readPayload(w *answer, r *http.Request, key entity.Key) (*service.Put, error) {
	values, err := parameters(r)
	if err != nil {
		return nil, err
	}
	kind, err := mediaType(r)
	switch {
	case err != nil:
		return nil, err
	case kind == "":
		return nil, fmt.Errorf("%w: no Content-Type: want that of the payload", service.ErrMediaType)
	}
	put, err := rawPut(values)
	if err != nil {
		return nil, err
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return nil, err
	}
	put.ContentType, put.Payload = r.Header.Get("Content-Type"), bytes.Clone(body) // without room to grow
	return put.put(key)
}

func (h *Handler) put(w *answer, r *http.Request) error { return h.write(w, r, h.readPut) }

func (h *Handler) putPayload(w *answer, r *http.Request) error {
	return h.write(w, r, h.readPayload)
}

// write executes the write that read returns for a request.
func (h *Handler) write(w *answer, r *http.Request, read func(*answer, *http.Request, entity.Key) (*service.Put, error)) error {
	key, err := pathKey(r)
	if err != nil {
		return err
	}
	when, err := guard(r)
	if err != nil {
		return err
	}
	p, err := read(w, r, key)
	if err != nil {
		return err
	}
	p.When = when
	done, err := h.service.Put(r.Context(), p)
	if err != nil {
		return err
	}
	if !done.Replaced {
		w.Header()["Etag"] = []string{etag(done.Block)}
	}
	status := http.StatusOK
	if done.Created {
		status = http.StatusCreated
	}
	return sendJSON(w, status, struct {
		written
		Created    bool                `json:"created"`
		Expiration jsonuint.Expiration `json:"expiration"`
	}{written{key.String(), jsonuint.Uint(done.Block)}, done.Created, jsonuint.Expiration(done.Expiration)})
}

// written is the common part of the answers to writes.
type written struct {
	Key   string        `json:"key"`
	Block jsonuint.Uint `json:"block"`
}

func (h *Handler) get(w *answer, r *http.Request) error {
	return h.read(w, r, func(e *entity.Entity) error {
		return send(w, http.StatusOK, jsonType, append(appendEntity(nil, e), '\n'))
	})
}

func (h *Handler) getPayload(w *answer, r *http.Request) error {
	return h.read(w, r, func(e *entity.Entity) error { return sendRaw(w, e) })
}

// read finds the requested entity and calls answer with it.
func (h *Handler) read(w *answer, r *http.Request, answer func(e *entity.Entity) error) error {
	key, err := pathKey(r)
	if err != nil {
		return err
	}
	if err := noParameters(r); err != nil {
		return err
	}
	e, err := h.service.Get(r.Context(), key, w.hold)
	if err != nil {
		return err
	}
	if h.service.ReadOnly() { // where others write, after a rewind another block may have the same number
		return answer(e)
	}
	// Send the entity's ETag, or answer that the client already has this
	// version.
	known, err := versions(r, "If-None-Match", true)
	if err != nil {
		return err
	}
	w.Header()["Etag"] = []string{etag(service.VersionOf(e))}
	if known != nil && known.Has(e) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return answer(e)
}

// sendRaw answers with only the payload. A payload is user data, so it must not
// run in a browser as a page of this service.
func sendRaw(w http.ResponseWriter, e *entity.Entity) error {
	kind := e.ContentType
	if kind == "" || !service.IsContentType(kind) { // others than this service may have written it
		kind = octets
	}
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin") // nor as a part of another's
	return send(w, http.StatusOK, kind, e.Content)
}

func (h *Handler) delete(w *answer, r *http.Request) error {
	key, err := pathKey(r)
	if err != nil {
		return err
	}
	if err := noParameters(r); err != nil {
		return err
	}
	when, err := guard(r)
	if err != nil {
		return err
	}
	done, err := h.service.Delete(r.Context(), key, when)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, written{key.String(), jsonuint.Uint(done.Block)})
}
