// Package strictjson reads documents of JSON so that nothing of them is lost or changed in
// silence: encoding/json reads one value and leaves what follows it, makes U+FFFD of what is
// no text, takes the last of two members with one name, and a null for nothing.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

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
	w := walker{text: text}
	return w.value(list, "")
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
const (
	list = "["
	kept = "*" // what is not looked at
)

// Names that users choose, so that they may differ in case alone.
func attributes(name string) bool {
	return name == "string_attributes" || name == "numeric_attributes"
}

// walker goes through a document that encoding/json has read.
type walker struct {
	text []byte
	pos  int
}

func (w *walker) space() byte {
	for w.pos < len(w.text) && strings.IndexByte(" \t\r\n", w.text[w.pos]) >= 0 {
		w.pos++
	}
	if w.pos == len(w.text) {
		return 0
	}
	return w.text[w.pos]
}

// value passes a value with the name of its member, if it is one. Null as a member says that
// the member is left out, but an item of a list and an attribute would become an empty text
// or a zero, which nobody has asked for.
func (w *walker) value(in, name string) error {
	switch w.space() {
	case '{':
		return w.object(in, name)
	case '[':
		return w.array(in)
	case '"':
		_, err := w.str(in != kept)
		return err
	case 'n':
		if in == list || attributes(in) {
			return wrong(w.pos, "null, where a text, a number or an object is wanted")
		}
	}
	for w.pos < len(w.text) && strings.IndexByte(",]} \t\r\n", w.text[w.pos]) < 0 {
		w.pos++
	}
	return nil
}

func (w *walker) array(in string) error {
	if in != kept {
		in = list
	}
	for w.pos++; w.space() != ']'; w.comma() {
		if err := w.value(in, ""); err != nil {
			return err
		}
	}
	w.pos++
	return nil
}

func (w *walker) comma() {
	if w.space() == ',' {
		w.pos++
	}
}

// object passes an object with the name of its member, if it is one.
func (w *walker) object(in, name string) error {
	var seen map[string]bool
	if in != kept {
		seen = map[string]bool{}
	}
	for w.pos++; w.space() != '}'; w.comma() {
		at := w.pos
		member, err := w.str(in != kept)
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
		place := name
		if seen != nil {
			seen[key] = true
		}
		if seen == nil || in == list && (key == "data" || key == "metadata") {
			place = kept
		}
		w.space()
		w.pos++ // the colon
		if err := w.value(place, member); err != nil {
			return err
		}
	}
	w.pos++
	return nil
}

// str passes a string and returns it. Strict says that no half of a surrogate pair may be in
// it.
func (w *walker) str(strict bool) (string, error) {
	from, escaped := w.pos, false
	for w.pos++; w.pos < len(w.text) && w.text[w.pos] != '"'; w.pos++ {
		if w.text[w.pos] != '\\' {
			continue
		}
		escaped = true
		if strict && w.text[w.pos+1] == 'u' {
			n := w.pair(w.pos)
			if n == 0 {
				return "", wrong(w.pos, "half of a surrogate pair, which is no character")
			}
			w.pos += n - 1
			continue
		}
		w.pos++
	}
	w.pos++
	text := w.text[from:min(w.pos, len(w.text))]
	if !escaped || !strict {
		return string(bytes.Trim(text, `"`)), nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}

// pair returns how many bytes an escape by \u takes, with its other half, and zero when it is
// half of a pair.
func (w *walker) pair(at int) int {
	one := w.unit(at)
	if !utf16.IsSurrogate(one) {
		return 6
	}
	if utf16.DecodeRune(one, w.unit(at+6)) != utf8.RuneError {
		return 12
	}
	return 0
}

// unit returns what an escape by \u says, or what is no surrogate.
func (w *walker) unit(at int) rune {
	if at+6 > len(w.text) || w.text[at] != '\\' || w.text[at+1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(w.text[at+2:at+6]), 16, 16)
	return rune(n)
}
