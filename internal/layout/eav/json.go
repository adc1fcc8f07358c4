package eav

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The attributes in payload rows are flat JSON objects of strings or unsigned
// integers, written and read once for every version. encoding/json takes ten
// microseconds for one, half of the time in which SQLite finds the row. So text
// without escapes, the usual case, is handled here, and the rest by
// encoding/json.

// appendString appends s as a JSON string, as json.Marshal writes it.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always can be
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendName appends the name of a member, after a separator.
func appendName(dst []byte, name string) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	return append(appendString(dst, name), ':')
}

// eachString calls f with each member of an object of strings.
func eachString(object []byte, f func(name, value string) error) error {
	return eachMember(object, cutString, f)
}

// eachNumber calls f with each member of an object of unsigned integers.
func eachNumber(object []byte, f func(name string, value uint64) error) error {
	return eachMember(object, cutNumber, f)
}

// eachMember calls f with each member of a JSON object that fills the text. An
// object with escapes is left to encoding/json; without escapes, every quote
// begins or ends a string. The strings share one copy of the text.
func eachMember[T any](object []byte, cut func(text string) (T, string, bool), f func(string, T) error) error {
	if bytes.IndexByte(object, '\\') >= 0 {
		var members map[string]T
		if err := json.Unmarshal(object, &members); err != nil {
			return err
		}
		for name, value := range members {
			if err := f(name, value); err != nil {
				return err
			}
		}
		return nil
	}
	rest, ok := strings.CutPrefix(string(object), "{")
	if ok && rest == "}" {
		return nil
	}
	for ok {
		var name string
		if name, rest, ok = cutString(rest); !ok || rest == "" || rest[0] != ':' {
			break
		}
		var value T
		if value, rest, ok = cut(rest[1:]); !ok || rest == "" {
			break
		}
		if err := f(name, value); err != nil || rest == "}" {
			return err
		}
		rest, ok = strings.CutPrefix(rest, ",")
	}
	return fmt.Errorf("malformed attributes at byte %d", len(object)-len(rest))
}

// cutString cuts a quoted string from the beginning of a text.
func cutString(text string) (s, rest string, ok bool) {
	for i := 1; i < len(text) && text[0] == '"' && text[i] >= ' '; i++ {
		if text[i] == '"' {
			return text[1:i], text[i+1:], true
		}
	}
	return "", text, false
}

// cutNumber cuts digits from the beginning of a text.
func cutNumber(text string) (n uint64, rest string, ok bool) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(text[:end], 10, 64)
	return n, text[end:], err == nil && (text[0] != '0' || end == 1)
}
