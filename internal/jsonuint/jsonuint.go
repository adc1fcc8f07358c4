// Package jsonuint encodes unsigned integers as JSON without loss. JavaScript
// and other clients read numbers as floating point and lose digits above 2^53,
// so larger integers are written as strings of digits. The package also encodes
// bytes and text, for hand-written encoders.
package jsonuint

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/varvedb/varve/store/entity"
)

// maxExact is the largest integer that is written as a JSON number.
const maxExact = 1<<53 - 1

// Append appends n as JSON.
func Append(b []byte, n uint64) []byte {
	if n <= maxExact {
		return strconv.AppendUint(b, n, 10)
	}
	return append(strconv.AppendUint(append(b, '"'), n, 10), '"')
}

// AppendExpiration appends the block at which an entity ends, or null if it
// never does.
func AppendExpiration(b []byte, block uint64) []byte {
	if block == entity.MaxBlock {
		return append(b, "null"...)
	}
	return Append(b, block)
}

// AppendHex appends bytes as 0x and hexadecimal digits, without quotes.
func AppendHex(b, data []byte) []byte { return hex.AppendEncode(append(b, "0x"...), data) }

// AppendText appends a string, which must be UTF-8. Most need no escapes; the
// others take a slower path.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // a string can always be marshalled
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Uint is an integer in a JSON document. It is read from a number or a string.
type Uint uint64

// MarshalJSON implements json.Marshaler.
func (n Uint) MarshalJSON() ([]byte, error) { return Append(nil, uint64(n)), nil }

// UnmarshalJSON implements json.Unmarshaler. It fails with an *Error.
func (n *Uint) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	v, err := strconv.ParseUint(string(bytes.Trim(text, `"`)), 10, 64)
	if err == nil {
		*n = Uint(v)
		return nil
	}
	// 1.0 and 1e3 are integers in JSON as well, and some clients write them.
	if f, err := strconv.ParseFloat(string(text), 64); err == nil && f >= 0 && f <= maxExact && f == math.Trunc(f) {
		*n = Uint(f)
		return nil
	}
	return &Error{Literal: string(text)}
}

// Map converts the integers of a document.
func Map(m map[string]Uint) map[string]uint64 { return convert[Uint, uint64](m) }

// FromMap converts integers for a document.
func FromMap(m map[string]uint64) map[string]Uint { return convert[uint64, Uint](m) }

func convert[A, B ~uint64](m map[string]A) map[string]B {
	if m == nil {
		return nil
	}
	list := make(map[string]B, len(m))
	for name, n := range m {
		list[name] = B(n)
	}
	return list
}

// Expiration is the block at which an entity ends, in a JSON document.
type Expiration uint64

// MarshalJSON implements json.Marshaler.
func (e Expiration) MarshalJSON() ([]byte, error) { return AppendExpiration(nil, uint64(e)), nil }

// Error reports JSON that is not a Uint.
type Error struct{ Literal string }

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s where an integer from 0 to 2^64-1 is wanted, as a number or as a string of its digits", e.Literal)
}
