package rpc

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// request is one decoded call.
type request struct {
	id     json.RawMessage // nil: a notification, which is not answered
	method string
	params []json.RawMessage
	err    *failure // why it cannot be called
}

// envelope is a request as JSON. Pointers distinguish missing members from
// empty ones.
type envelope struct {
	Version *string `json:"jsonrpc"`
	ID      shared  `json:"id"`
	Method  *string `json:"method"`
	Params  shared  `json:"params"`
}

// shared is JSON that shares the memory of the text it was decoded from.
// json.RawMessage would be a copy, and parameters can be almost all of a body.
type shared json.RawMessage

// UnmarshalJSON implements json.Unmarshaler. It may keep the text, because the
// caller of json.Unmarshal keeps the whole text.
func (s *shared) UnmarshalJSON(text []byte) error {
	*s = text
	return nil
}

var null = json.RawMessage("null")

// decode reads a request or a batch of at most `most` requests. Members of a
// batch may be invalid calls; a member that is no request at all is an error.
func decode(body []byte, most int) (list []request, batch bool, fault *failure) {
	body = bytes.TrimLeft(body, " \t\r\n")
	if len(body) == 0 || body[0] != '[' {
		r, fault := decodeOne(body)
		return []request{r}, false, fault
	}
	if !json.Valid(body) {
		var whole json.RawMessage
		return nil, true, parseFault(json.Unmarshal(body, &whole)) // it names the fault
	}
	members, err := elements(body, most)
	switch {
	case errors.Is(err, errTooMany):
		// Answer with a list that has the id of the first call, like
		// go-ethereum, because clients look there for the result of a batch.
		first, _ := decodeOne(members[0])
		first.id = properID(first.id)
		first.err = failf(CodeTooLarge, "a batch of more than %d calls", most)
		return []request{first}, true, nil
	case err != nil:
		return nil, true, parseFault(err)
	case len(members) == 0:
		return nil, true, failf(CodeRequest, "an empty batch")
	}
	list = make([]request, len(members))
	for i, text := range members {
		// The text is valid JSON, so an error concerns this member.
		if list[i], fault = decodeOne(text); fault != nil {
			list[i] = request{id: null, err: failf(CodeRequest, "%s", fault.message)}
		}
	}
	return list, true, nil
}

// inWords describes a JSON error without Go types, which clients do not know.
func inWords(err error) string {
	var unfit *json.UnmarshalTypeError
	if !errors.As(err, &unfit) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	message := fmt.Sprintf("%s, want %s", unfit.Value, kindInWords(unfit.Type))
	if unfit.Field != "" {
		message = fmt.Sprintf("%q: %s", unfit.Field, message)
	}
	return message
}

func kindInWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindInWords(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return "a string"
		}
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

// errTooMany: a list has more elements than are accepted.
var errTooMany = errors.New("too many elements")

// elements returns the elements of a JSON list; if there are more than most,
// the first of them with errTooMany. Further elements take no memory: a list of
// a million numbers is two million bytes, but a slice of its elements was forty
// times that. The elements share the memory of the text.
func elements(text []byte, most int) (list []json.RawMessage, err error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '[' {
		return nil, cmp.Or(err, errors.New("want a list"))
	}
	for dec.PeekKind() != ']' {
		if len(list) == most {
			return list, errTooMany
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end := dec.InputOffset()
		list = append(list, text[end-int64(len(value)):end:end])
	}
	return list, nil
}

// readList decodes a list of at most `most` values. It counts them before it
// decodes them. Null is not a list.
func readList[T any](text []byte, most int) ([]T, error) {
	if string(text) == "null" {
		return nil, nil
	}
	texts, err := elements(text, most)
	if errors.Is(err, errTooMany) {
		return nil, fmt.Errorf("a list of more than %d", most)
	}
	if err != nil {
		return nil, err
	}
	list := make([]T, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func parseFault(err error) *failure { return failf(CodeParse, "the request is not JSON: %v", err) }

// decodeOne reads one request. It fails when the text is not a JSON request.
func decodeOne(text []byte) (r request, fault *failure) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || len(text) == 0 {
			return request{id: null}, parseFault(err)
		}
		return request{id: properID(json.RawMessage(e.ID)), err: failf(CodeRequest, "not a request: %s", inWords(err))}, nil
	}
	r.id = json.RawMessage(e.ID)
	switch {
	case r.id != nil && !isID(r.id):
		r.id, r.err = null, failf(CodeRequest, "an id is a string in UTF-8 with at most %d bytes, a number or null", maxID)
	case e.Version == nil || *e.Version != "2.0":
		r.err = failf(CodeRequest, `"jsonrpc" must be "2.0"`)
	case e.Method == nil:
		r.err = failf(CodeRequest, "no method")
	default:
		r.method = *e.Method
		if len(e.Params) == 0 || string(e.Params) == "null" {
			break
		}
		if e.Params[0] != '[' {
			r.err = failf(CodeParams, "parameters go by position, in an array")
			break
		}
		var err error
		if r.params, err = elements(e.Params, maxParams); err != nil {
			r.err = failf(CodeParams, "parameters: %v, at most %d are taken", err, maxParams)
		}
	}
	if r.err != nil && r.id == nil {
		r.id = null // an item that is no request is answered, too
	}
	return r, nil
}

// maxParams bounds the parameters of a call; no method takes that many.
const maxParams = 16

// maxID bounds an id in bytes, because it is echoed.
const maxID = 1024

func isID(text json.RawMessage) bool {
	return len(text) <= maxID && utf8.Valid(text) && (text[0] == '"' || text[0] == '-' || '0' <= text[0] && text[0] <= '9' || string(text) == "null")
}

func properID(text json.RawMessage) json.RawMessage {
	if len(text) > 0 && isID(text) {
		return text
	}
	return null
}

// quantity is a number in Ethereum's form (0x and hexadecimal digits), or a
// plain JSON number.
type quantity uint64

// UnmarshalJSON implements json.Unmarshaler.
func (q *quantity) UnmarshalJSON(text []byte) error {
	s := string(text)
	if s == "null" {
		return nil
	}
	if len(s) >= 2 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	digits, base := s, 10
	if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		digits, base = s[2:], 16
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil || text[0] == '"' && base == 10 {
		return errors.New("want a number, or 0x and hexadecimal digits, in a string")
	}
	*q = quantity(n)
	return nil
}

// appendQuantity appends a number in Ethereum's form.
func appendQuantity(b []byte, n uint64) []byte {
	return append(strconv.AppendUint(append(b, `"0x`...), n, 16), '"')
}
