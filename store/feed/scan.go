package feed

import (
	"bytes"
	"fmt"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON text of a known shape. It is our own because
// encoding/json accepts what a feed must not contain: repeated keys, keys in
// another case, invalid UTF-8 and lone surrogates, each of which it resolves
// silently. It is several times faster, too.
//
// Byte slices that it returns are valid until the next call.
type scanner struct {
	buf     []byte
	pos     int
	named   int               // where the last member's name began
	scratch []byte            // the last string that had escapes
	names   map[string]string // strings seen often, so that repeats share memory
}

// The names kept for reuse: enough for any real set of attribute names, and a
// bound for a hostile one.
const (
	maxNames   = 4096
	maxNameLen = 64
)

func (s *scanner) reset(text []byte) { s.buf, s.pos = text, 0 }

// errorf makes an error that tells the place within the text, from 1.
func (s *scanner) errorf(format string, args ...any) error { return errorAt(s.pos, format, args...) }

// nameErrorf is errorf for the last name.
func (s *scanner) nameErrorf(format string, args ...any) error {
	return errorAt(s.named, format, args...)
}

func errorAt(pos int, format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", pos+1, fmt.Sprintf(format, args...))
}

func (s *scanner) space() {
	for s.pos < len(s.buf) {
		switch s.buf[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos == len(s.buf) {
		return 0
	}
	return s.buf[s.pos]
}

// expect consumes c.
func (s *scanner) expect(c byte, what string) error {
	if s.peek() != c || s.pos == len(s.buf) {
		return s.unexpected(what)
	}
	s.pos++
	return nil
}

func (s *scanner) unexpected(want string) error {
	if s.pos >= len(s.buf) {
		return s.errorf("the text ends, want %s", want)
	}
	r, _ := utf8.DecodeRune(s.buf[s.pos:])
	return s.errorf("unexpected %q, want %s", r, want)
}

// end checks that nothing but white space is left.
func (s *scanner) end() error {
	if s.space(); s.pos < len(s.buf) {
		return s.unexpected("the end of the line")
	}
	return nil
}

// null consumes the literal null if it is next.
func (s *scanner) null() bool {
	s.space()
	if bytes.HasPrefix(s.buf[s.pos:], []byte("null")) {
		s.pos += len("null")
		return true
	}
	return false
}

// more moves to element n of the object or array that ends with end, and tells
// whether there is one. If not, end is consumed.
func (s *scanner) more(n int, end byte) (bool, error) {
	c := s.peek()
	switch {
	case c == end:
		s.pos++
		return false, nil
	case n == 0:
		return true, nil
	case c != ',':
		return false, s.unexpected(fmt.Sprintf("%q or %q", ',', end))
	}
	s.pos++
	return true, nil
}

// name reads a member's name and the colon after it.
func (s *scanner) name() ([]byte, error) {
	s.space()
	s.named = s.pos
	name, err := s.str("a name in quotes")
	if err != nil {
		return nil, err
	}
	return name, s.expect(':', "a colon")
}

// str reads a string.
func (s *scanner) str(what string) ([]byte, error) {
	if err := s.expect('"', what); err != nil {
		return nil, err
	}
	start := s.pos
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; {
		case c == '"':
			s.pos++
			return s.buf[start : s.pos-1], nil
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			return nil, s.errorf("control character %#02x in a string", c)
		}
		s.pos++
	}
	return nil, s.errorf("the text ends within a string")
}

// plainStr is str for long strings without escapes, of which it does not check
// that they have no control characters.
func (s *scanner) plainStr(what string) ([]byte, error) {
	if s.peek() == '"' {
		rest := s.buf[s.pos+1:]
		end := bytes.IndexByte(rest, '"')
		if end >= 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
			s.pos += end + 2
			return rest[:end], nil
		}
	}
	return s.str(what)
}

// escaped reads the rest of a string that began at start and has its first
// escape at s.pos.
func (s *scanner) escaped(start int) ([]byte, error) {
	s.scratch = append(s.scratch[:0], s.buf[start:s.pos]...)
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; {
		case c == '"':
			s.pos++
			return s.scratch, nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.errorf("control character %#02x in a string", c)
		default:
			s.scratch = append(s.scratch, c)
			s.pos++
		}
	}
	return nil, s.errorf("the text ends within a string")
}

// escape appends what the escape at s.pos stands for to the scratch.
func (s *scanner) escape() error {
	if s.pos+1 == len(s.buf) {
		return s.errorf("the text ends within an escape")
	}
	c := s.buf[s.pos+1]
	if c == 'u' {
		return s.unicodeEscape()
	}
	if c != '"' && c != '\\' && c != '/' {
		if c = controlEscapes[c]; c == 0 {
			return s.errorf("unknown escape \\%c", s.buf[s.pos+1])
		}
	}
	s.scratch = append(s.scratch, c)
	s.pos += 2
	return nil
}

var controlEscapes = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (s *scanner) unicodeEscape() error {
	r, ok := s.hex4(s.pos)
	if !ok {
		return s.errorf("a \\u escape needs four hex digits")
	}
	size := 6
	if utf16.IsSurrogate(r) {
		low, _ := s.hex4(s.pos + 6)
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return s.errorf("half of a surrogate pair")
		}
		size = 12
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	s.pos += size
	return nil
}

// hex4 reads the escape \uXXXX at pos.
func (s *scanner) hex4(pos int) (r rune, ok bool) {
	if len(s.buf) < pos+6 || s.buf[pos] != '\\' || s.buf[pos+1] != 'u' {
		return 0, false
	}
	for _, c := range s.buf[pos+2 : pos+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// uint reads an unsigned integer of at most limit. It is exact: no fraction,
// no exponent, no sign.
func (s *scanner) uint(limit uint64) (uint64, error) {
	c := s.peek()
	if c == '-' {
		return 0, s.errorf("the number is negative")
	}
	if c < '0' || c > '9' {
		return 0, s.unexpected("an unsigned integer")
	}
	start, v := s.pos, uint64(0)
	for ; s.pos < len(s.buf); s.pos++ {
		digit := uint64(s.buf[s.pos] - '0')
		if digit > 9 {
			break
		}
		if v > (math.MaxUint64-digit)/10 {
			return 0, s.errorf("the number is above %d", limit)
		}
		v = v*10 + digit
	}
	switch {
	case s.pos < len(s.buf) && bytes.IndexByte([]byte(".eE"), s.buf[s.pos]) >= 0:
		return 0, s.errorf("the number is not a plain integer")
	case s.buf[start] == '0' && s.pos-start > 1:
		return 0, s.errorf("the number begins with 0")
	case v > limit:
		return 0, s.errorf("the number %d is above %d", v, limit)
	}
	return v, nil
}

// intern returns name as a string, the same one for repeats.
func (s *scanner) intern(name []byte) string {
	if len(name) > maxNameLen {
		return string(name)
	}
	if known, ok := s.names[string(name)]; ok {
		return known
	}
	if s.names == nil {
		s.names = make(map[string]string)
	}
	str := string(name)
	if len(s.names) < maxNames {
		s.names[str] = str
	}
	return str
}

// stringMap reads an object whose values are strings. An empty one and null,
// which is how Go writes a nil map, give nil.
func (s *scanner) stringMap() (map[string]string, error) {
	return members(s, func() (string, error) {
		value, err := s.str("a string")
		return string(value), err
	})
}

// numericMap reads an object whose values are unsigned integers, like
// stringMap.
func (s *scanner) numericMap() (map[string]uint64, error) {
	return members(s, func() (uint64, error) { return s.uint(math.MaxUint64) })
}

func members[V any](s *scanner, value func() (V, error)) (map[string]V, error) {
	if s.null() {
		return nil, nil
	}
	if err := s.expect('{', "an object"); err != nil {
		return nil, err
	}
	var m map[string]V
	for n := 0; ; n++ {
		more, err := s.more(n, '}')
		if err != nil || !more {
			return m, err
		}
		raw, err := s.name()
		if err != nil {
			return nil, err
		}
		name := s.intern(raw)
		if _, repeated := m[name]; repeated {
			return nil, s.nameErrorf("attribute %q is given twice", name)
		}
		v, err := value()
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		if m == nil {
			m = make(map[string]V)
		}
		m[name] = v
	}
}
