// Package strictjson reads JSON documents without silent losses or changes:
// encoding/json reads one value and ignores the rest, replaces invalid text by
// U+FFFD, takes the last of two members with one name, and ignores a null.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varvedb/varve/internal/jsonuint"
)

// Error describes where a document is wrong.
type Error struct {
	Offset int // of the byte at fault
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func wrong(offset int, format string, args ...any) error {
	return &Error{Offset: offset, Err: fmt.Errorf(format, args...)}
}

var byteOrderMark = []byte("\ufeff")

// Limits bound the size of a decoded document. They are checked before
// decoding, because two bytes of the document may become a hundred bytes of
// memory.
type Limits struct {
	List    int // items of a list
	Members int // of an object

	// Admit is called with the memory that the items of all lists and the
	// attributes will take, without their bytes, before it is allocated; nil
	// means no limit.
	Admit func(memory int64) error
	// Memory is the maximum of that memory.
	Memory int64

	TooLarge error // wrapped by errors about exceeded limits
}

// Upper bounds of the memory of an item in addition to its bytes: of a list or
// an object, including the values made of it later, and of a text or a number.
// An attribute is an entry of a map.
const (
	compositeBytes = 200
	textBytes      = 48
	attributeBytes = 96
)

// Decode decodes a document of one value into the value that dst points to. It
// fails with an *Error when the document is not UTF-8, or has text after the
// value, a member that dst does not know or that occurs twice, half of a
// surrogate pair, or a null where a member cannot be left out. The contents of
// the members "data" and "metadata" are kept as they are, so they may have all
// of these except invalid UTF-8.
func Decode(text []byte, dst any) error { return DecodeWithin(text, dst, nil) }

// DecodeWithin is Decode within limits; nil means none.
func DecodeWithin(text []byte, dst any, limits *Limits) error {
	switch {
	case bytes.HasPrefix(text, byteOrderMark):
		return wrong(0, "a byte order mark: save the text as UTF-8 without one")
	case !utf8.Valid(text):
		return wrong(invalidUTF8(text), "not UTF-8")
	}
	walk := walker{doc: text, limits: limits, dec: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	walked := walk.value(list, "")
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if limits != nil {
		// If the walk stops early, the rest is unchecked. That is safe, because
		// json.Unmarshal finds the syntax error again, with a better message,
		// before it allocates anything.
		place := new(Error)
		switch {
		case errors.As(walked, &place), errors.Is(walked, limits.TooLarge):
			return walked
		case walked != nil:
			dst = new(json.RawMessage)
		case limits.Admit != nil:
			if err := limits.Admit(walk.memory); err != nil {
				return err
			}
		}
	}
	if err := dec.Decode(dst); err != nil {
		return located(text, dec, err)
	}
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		return wrong(len(text)-len(rest), "something follows the value")
	}
	return walked
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}

// located adds the position at which the decoder stopped.
func located(text []byte, dec *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var number *jsonuint.Error
	switch {
	case errors.Is(err, io.EOF):
		return wrong(0, "the text is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wrong(len(text), "the text ends within a value")
	case errors.As(err, &syntax):
		return &Error{int(syntax.Offset) - 1, err}
	case errors.As(err, &number):
		return &Error{endOf(text, number.Literal) - 1, err}
	case errors.As(err, &kind):
		return wrong(int(kind.Offset)-1, "%s of JSON where %q wants %s", kind.Value, kind.Field, kind.Type)
	}
	return &Error{int(dec.InputOffset()), err}
}

// endOf returns the end of a value in a document, given the value's text.
func endOf(text []byte, literal string) int {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	for {
		_, err := dec.Token()
		end := dec.InputOffset()
		if err != nil || bytes.HasSuffix(text[:end], []byte(literal)) {
			return int(end)
		}
	}
}

// The context of a value: list for an item of a list, otherwise the name of its
// member. No member has this name.
const list = "["

// Names that users choose; two of them may differ in case only.
func attributes(name string) bool {
	return name == "string_attributes" || name == "numeric_attributes"
}

// walker scans a document before it is decoded.
type walker struct {
	doc    []byte
	dec    *jsontext.Decoder
	limits *Limits // nil: none
	memory int64   // of the values scanned so far
}

// count adds one to the number of items or members, and its memory, and checks
// the limits.
func (w *walker) count(n, most int, of string, memory int64) error {
	w.memory += memory
	switch {
	case w.limits == nil:
	case n > most:
		return w.tooLarge("more than %d %s", most, of)
	case w.memory > w.limits.Memory:
		return w.tooLarge("what it says takes more than %d bytes of memory; cut it into several", w.limits.Memory)
	}
	return nil
}

func (w *walker) tooLarge(format string, args ...any) error {
	return &Error{int(w.dec.InputOffset()), fmt.Errorf("%w: %s", w.limits.TooLarge, fmt.Sprintf(format, args...))}
}

// value scans a value; name is its member's name, if it is one. Null as a
// member means that the member is left out. In a list or as an attribute it is
// refused, because it would become an empty text or a zero, which the client
// did not send.
func (w *walker) value(in, name string) (err error) {
	switch w.dec.PeekKind() {
	case '{':
		err = w.object(in, name)
	case '[':
		err = w.array()
	case 'n':
		if _, err = w.dec.ReadToken(); in == list || attributes(in) {
			err = wrong(int(w.dec.InputOffset())-len("null"), "null, where a text, a number or an object is wanted")
		}
	default:
		_, _, err = w.text()
	}
	return err
}

// array scans a list.
func (w *walker) array() error {
	_, err := w.dec.ReadToken()
	for n := 1; err == nil && w.dec.PeekKind() != ']'; n++ {
		memory := int64(textBytes)
		if kind := w.dec.PeekKind(); kind == '{' || kind == '[' {
			memory = compositeBytes
		}
		if err = w.count(n, w.limitsOrNone().List, "items in a list", memory); err == nil {
			err = w.value(list, "")
		}
	}
	if err == nil {
		_, err = w.dec.ReadToken()
	}
	return err
}

func (w *walker) limitsOrNone() Limits {
	if w.limits == nil {
		return Limits{}
	}
	return *w.limits
}

// object scans an object; name is its member's name, if it is one.
func (w *walker) object(in, name string) error {
	_, err := w.dec.ReadToken()
	var seen names
	for err == nil && w.dec.PeekKind() != '}' {
		raw, at, err := w.text()
		if err != nil {
			return err
		}
		member := w.nameOf(raw, at)
		memory := int64(0)
		if attributes(name) {
			memory = attributeBytes
		} else if bytes.ContainsFunc(member, unicode.IsUpper) {
			return wrong(at, "unknown field %q: names are in lower case", member) // encoding/json takes it
		}
		if !seen.add(member) {
			return wrong(at, "the name %q is given twice", member)
		}
		if err = w.count(seen.count, w.limitsOrNone().Members, "members of an object", memory); err != nil {
			return err
		}
		if in == list && (string(member) == "data" || string(member) == "metadata") {
			err = w.dec.SkipValue()
		} else {
			err = w.value(name, placeOf(member))
		}
		if err != nil {
			return err
		}
	}
	_, end := w.dec.ReadToken()
	return cmp.Or(err, end)
}

// text scans a number, a word or a string, and refuses half of a surrogate
// pair. It returns the raw text, valid until the next read, and its position.
func (w *walker) text() (raw []byte, at int, err error) {
	raw, err = w.dec.ReadValue()
	at = int(w.dec.InputOffset()) - len(raw)
	if err != nil || bytes.IndexByte(raw, '\\') < 0 {
		return raw, at, err
	}
	_, err = jsontext.NewDecoder(bytes.NewReader(raw)).ReadToken()
	if half := (*jsontext.SyntacticError)(nil); errors.As(err, &half) {
		return nil, at, wrong(at+int(half.ByteOffset), "half of a surrogate pair, which is no character")
	}
	return raw, at, err
}

// nameOf decodes a member's name. The result is valid as long as the document.
func (w *walker) nameOf(raw []byte, at int) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return w.doc[at+1 : at+len(raw)-1]
	}
	name, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return raw // text has refused it
	}
	return name
}

// placeOf maps a member's name to the context that value needs.
func placeOf(member []byte) string {
	switch string(member) {
	case "string_attributes":
		return "string_attributes"
	case "numeric_attributes":
		return "numeric_attributes"
	}
	return "" // most, so it costs no memory
}

// names has the names of an object's members. The first ones are in a list,
// because most objects have few members, and a document may have a hundred
// thousand objects.
type names struct {
	count int
	first [12][]byte
	more  map[string]bool
}

// add adds a name, and reports whether it is new.
func (n *names) add(name []byte) bool {
	first := n.first[:min(n.count, len(n.first))]
	if slices.ContainsFunc(first, func(other []byte) bool { return bytes.Equal(other, name) }) || n.more[string(name)] {
		return false
	}
	if n.count < len(n.first) {
		n.first[n.count] = name
	} else {
		if n.more == nil {
			n.more = map[string]bool{}
		}
		n.more[string(name)] = true
	}
	n.count++
	return true
}
