package eav

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// The cached attributes are flat JSON objects of strings or of unsigned
// integers, written and read once for every version. encoding/json takes ten
// microseconds for one, half of what SQLite takes to find the row; the common
// case, text without escapes, is read and written here in one, and the rest is
// left to encoding/json.

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

// appendName appends the name of a member and what separates it from the last.
func appendName(dst []byte, name string) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	return append(appendString(dst, name), ':')
}

// scanner reads a flat JSON object.
type scanner struct {
	text []byte
	pos  int
}

// next returns the next member's name and value as they stand in the text, or
// false at the end of the object. Plain tells that they need no unescaping.
func (s *scanner) next() (name, value []byte, plain, ok bool, err error) {
	switch c := s.skip(); {
	case c == '{' && s.pos == 0:
		s.pos++
		if s.skip() == '}' {
			return nil, nil, false, false, s.end()
		}
	case c == ',' && s.pos > 0:
		s.pos++
		s.skip()
	case c == '}' && s.pos > 0:
		return nil, nil, false, false, s.end()
	default:
		return nil, nil, false, false, s.malformed()
	}
	name, plain, err = s.string()
	if err != nil {
		return nil, nil, false, false, err
	}
	if s.skip() != ':' {
		return nil, nil, false, false, s.malformed()
	}
	s.pos++
	if c := s.skip(); c >= '0' && c <= '9' {
		value = s.number()
		if len(value) == 0 {
			err = s.malformed()
		}
		return name, value, plain, true, err
	}
	value, plainValue, err := s.string()
	return name, value, plain && plainValue, true, err
}

// skip passes white space and returns the byte after it, 0 at the end.
func (s *scanner) skip() byte {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// string returns what is between the quotes, and whether it has no escapes.
func (s *scanner) string() (text []byte, plain bool, err error) {
	if s.pos >= len(s.text) || s.text[s.pos] != '"' {
		return nil, false, s.malformed()
	}
	start := s.pos + 1
	plain = true
	for i := start; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\':
			plain = false
			i++
		case c == '"':
			s.pos = i + 1
			return s.text[start:i], plain, nil
		case c < ' ':
			return nil, false, s.malformed()
		}
	}
	return nil, false, s.malformed()
}

func (s *scanner) number() []byte {
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos] >= '0' && s.text[s.pos] <= '9' {
		s.pos++
	}
	if s.text[start] == '0' && s.pos > start+1 {
		return nil
	}
	return s.text[start:s.pos]
}

// end checks that nothing follows the object.
func (s *scanner) end() error {
	s.pos++
	if s.skip() != 0 || s.pos < len(s.text) {
		return s.malformed()
	}
	return nil
}

func (s *scanner) malformed() error {
	return fmt.Errorf("malformed attributes at byte %d", s.pos)
}

// unquote undoes the escapes of a JSON string.
func unquote(text []byte) (s string, err error) {
	quoted := append(append([]byte{'"'}, text...), '"')
	err = json.Unmarshal(quoted, &s)
	return s, err
}

// eachString calls f with each member of an object of strings.
func eachString(object []byte, f func(name, value string) error) error {
	return eachMember(object, func(name string, value []byte, plain bool) error {
		if plain {
			return f(name, string(value))
		}
		text, err := unquote(value)
		if err != nil {
			return err
		}
		return f(name, text)
	})
}

// eachNumber calls f with each member of an object of unsigned integers.
func eachNumber(object []byte, f func(name string, value uint64) error) error {
	return eachMember(object, func(name string, value []byte, _ bool) error {
		n, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
		return f(name, n)
	})
}

func eachMember(object []byte, f func(name string, value []byte, plain bool) error) error {
	s := scanner{text: object}
	for {
		name, value, plain, ok, err := s.next()
		if err != nil || !ok {
			return err
		}
		text := string(name)
		if !plain {
			if text, err = unquote(name); err != nil {
				return err
			}
		}
		if err := f(text, value, plain); err != nil {
			return err
		}
	}
}
