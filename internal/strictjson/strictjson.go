// Package strictjson reads documents of JSON so that nothing of them is lost or changed in
// silence: encoding/json reads one value and leaves what follows it, makes U+FFFD of what is
// no text, takes the last of two members with one name, and a null for nothing.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varvedb/varve/internal/jsonuint"
)

// Error tells where a document is wrong.
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

// Decode reads a document of one value into what dst points to. It fails with an *Error when
// the document is not UTF-8, has something behind the value, a member that dst does not know
// or a name twice, half of a surrogate pair, or a null where a member cannot be left out.
// What the members "data" and "metadata" hold is kept as it is, so it may have all of these
// but what is not UTF-8.
func Decode(text []byte, dst any) error {
	switch {
	case bytes.HasPrefix(text, byteOrderMark):
		return wrong(0, "a byte order mark: save the text as UTF-8 without one")
	case !utf8.Valid(text):
		return wrong(invalidUTF8(text), "not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(dst); err != nil {
		return located(text, dec, err)
	}
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		return wrong(len(text)-len(rest), "something follows the value")
	}
	again := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return check(again, list, "")
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

// located finds where the decoder stopped.
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

// endOf returns where a value of a document ends, given its text.
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

// The places that a value can be in, apart from an object that is a member: its name. No
// member of ours is called so.
const list = "["

// Names that users choose, so that they may differ in case alone.
func attributes(name string) bool {
	return name == "string_attributes" || name == "numeric_attributes"
}

// check passes a value that encoding/json has read, with the name of its member, if it is one.
// Null as a member says that the member is left out, but an item of a list and an attribute
// would become an empty text or a zero, which nobody has asked for.
func check(dec *jsontext.Decoder, in, name string) (err error) {
	switch dec.PeekKind() {
	case '{':
		err = object(dec, in, name)
	case '[':
		for _, err = dec.ReadToken(); err == nil && dec.PeekKind() != ']'; {
			err = check(dec, list, "")
		}
		if err == nil {
			_, err = dec.ReadToken()
		}
	case 'n':
		if _, err = dec.ReadToken(); in == list || attributes(in) {
			err = wrong(int(dec.InputOffset())-len("null"), "null, where a text, a number or an object is wanted")
		}
	default:
		_, _, err = text(dec)
	}
	return err
}

// object passes an object with the name of its member, if it is one.
func object(dec *jsontext.Decoder, in, name string) error {
	_, err := dec.ReadToken()
	for seen := map[string]bool{}; err == nil && dec.PeekKind() != '}'; {
		member, at, err := text(dec)
		if err != nil {
			return err
		}
		key := member
		if !attributes(name) {
			key = strings.ToLower(member) // as members of Go are found
		}
		if seen[key] {
			return wrong(at, "the name %q is given twice", member)
		}
		seen[key] = true
		if in == list && (key == "data" || key == "metadata") {
			err = dec.SkipValue()
		} else {
			err = check(dec, name, member)
		}
		if err != nil {
			return err
		}
	}
	_, end := dec.ReadToken()
	return cmp.Or(err, end)
}

// text passes a number, a word or a string, in which no half of a surrogate pair may be, and
// returns it with its place.
func text(dec *jsontext.Decoder) (s string, at int, err error) {
	raw, err := dec.ReadValue()
	at = int(dec.InputOffset()) - len(raw)
	if err != nil || !bytes.ContainsRune(raw, '\\') {
		return string(bytes.Trim(raw, `"`)), at, err
	}
	strict := jsontext.NewDecoder(bytes.NewReader(raw))
	token, err := strict.ReadToken()
	if half := (*jsontext.SyntacticError)(nil); errors.As(err, &half) {
		return "", at, wrong(at+int(half.ByteOffset), "half of a surrogate pair, which is no character")
	}
	return token.String(), at, err
}
