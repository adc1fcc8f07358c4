package node

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/varvedb/varve/store/entity"
)

// scanner reads an answer, as the node writes JSON: without spaces. It is not for reading
// anything else. The first fault stays, and everything after it is nothing.
type scanner struct {
	rest  []byte
	err   error
	names map[string]string // of attributes, which are few
}

// begin takes an answer and comes to its result.
func (s *scanner) begin(answer []byte) {
	s.rest, s.err = answer, nil
	rest, ok := bytes.CutPrefix(answer, []byte(answerHead))
	if !ok {
		s.fail("an answer")
	}
	s.rest = rest
}

// end returns the first fault, or that there is more.
func (s *scanner) end() error {
	if s.take('}'); s.err == nil && len(s.rest) > 0 {
		s.fail("the end")
	}
	return s.err
}

func (s *scanner) fail(want string) {
	if s.err == nil {
		s.err = fmt.Errorf("want %s at %.80q", want, s.rest)
	}
	s.rest = nil
}

// is takes a byte if it comes next.
func (s *scanner) is(c byte) bool {
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) take(c byte) {
	if !s.is(c) {
		s.fail(strconv.QuoteRune(rune(c)))
	}
}

// list reads a list of anything.
func (s *scanner) list(each func()) {
	s.take('[')
	for s.err == nil && !s.is(']') {
		each()
		if !s.is(',') && (len(s.rest) == 0 || s.rest[0] != ']') {
			s.fail("a comma")
		}
	}
}

// object reads an object, whose members each reads by their names.
func (s *scanner) object(each func(name []byte)) {
	s.take('{')
	for s.err == nil && !s.is('}') {
		name := s.text()
		s.take(':')
		each(name)
		if !s.is(',') && (len(s.rest) == 0 || s.rest[0] != '}') {
			s.fail("a comma")
		}
	}
}

// text reads a string.
func (s *scanner) text() []byte {
	s.take('"')
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 {
		s.fail("a string")
		return nil
	}
	if bytes.IndexByte(s.rest[:end], '\\') < 0 {
		text := s.rest[:end]
		s.rest = s.rest[end+1:]
		return text
	}
	for escaped(s.rest[:end]) {
		next := bytes.IndexByte(s.rest[end+1:], '"')
		if next < 0 {
			s.fail("a string")
			return nil
		}
		end += 1 + next
	}
	var text string
	if err := json.Unmarshal(append(append([]byte{'"'}, s.rest[:end]...), '"'), &text); err != nil {
		s.fail("a string: " + err.Error())
		return nil
	}
	s.rest = s.rest[end+1:]
	return []byte(text)
}

// escaped tells whether a text ends with a backslash that is not itself escaped.
func escaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}

func (s *scanner) number() (n uint64) {
	digits := 0
	for digits < len(s.rest) && '0' <= s.rest[digits] && s.rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseUint(string(s.rest[:digits]), 10, 64)
	if err != nil {
		s.fail("a number")
		return 0
	}
	s.rest = s.rest[digits:]
	return n
}

func (s *scanner) digits() []byte {
	text := s.text()
	if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		s.fail("0x and digits")
		return nil
	}
	return text[2:]
}

func (s *scanner) quantity() uint64 {
	n, err := strconv.ParseUint(string(s.digits()), 16, 64)
	if err != nil {
		s.fail("a quantity")
	}
	return n
}

// bytes reads hexadecimal digits of any length.
func (s *scanner) bytes(into []byte) []byte {
	into, err := hex.AppendDecode(into, s.digits())
	if err != nil {
		s.fail("hexadecimal digits")
	}
	return into
}

func (s *scanner) fixed(into []byte) {
	if got := s.bytes(into[:0]); len(got) != len(into) {
		s.fail(fmt.Sprintf("%d bytes", len(into)))
	}
}

// page is an answer to a query.
type page struct {
	found  []found
	block  uint64
	cursor string
}

// found is an entity, as far as it was answered. Synthetic attributes are among the others.
type found struct {
	entity.Entity
	fields fields
}

// page reads a page into one that was read before.
func (s *scanner) page(p *page) {
	p.found, p.cursor = p.found[:0], ""
	s.object(func(name []byte) {
		switch string(name) {
		case "data":
			s.list(func() {
				if len(p.found) == cap(p.found) {
					p.found = append(p.found, found{})
				} else {
					p.found = p.found[:len(p.found)+1]
				}
				s.entity(&p.found[len(p.found)-1])
			})
		case "blockNumber":
			p.block = s.quantity()
		case "cursor":
			p.cursor = string(s.text())
		default:
			s.fail("data, blockNumber or cursor")
		}
	})
}

func (s *scanner) entity(f *found) {
	strings, numbers := f.StringAttributes, f.NumericAttributes
	if strings == nil {
		strings, numbers = map[string]string{}, map[string]uint64{}
	}
	clear(strings)
	clear(numbers)
	*f = found{Entity: entity.Entity{StringAttributes: strings, NumericAttributes: numbers, Content: f.Content[:0]}}
	s.object(func(name []byte) {
		switch string(name) {
		case "key":
			f.fields |= withKey
			s.fixed(f.Key[:])
		case "value":
			f.fields |= withPayload
			f.Content = s.bytes(f.Content)
		case "contentType":
			f.fields |= withOthers
			f.ContentType = s.name()
		case "owner":
			s.fixed(f.Owner[:])
		case "creator":
			s.fixed(f.Creator[:])
		case "expiresAt":
			f.Expiration = s.number()
		case "createdAtBlock":
			f.Sequence |= s.number() << 32
		case "lastModifiedAtBlock":
			f.LastModifiedAtBlock = s.number()
		case "transactionIndexInBlock":
			f.Sequence |= s.number() << 16
		case "operationIndexInTransaction":
			f.Sequence |= s.number()
		case "stringAttributes":
			f.fields |= withAttributes
			s.list(func() { s.attribute(func(name string) { strings[name] = string(s.text()) }) })
		case "numericAttributes":
			s.list(func() { s.attribute(func(name string) { numbers[name] = s.number() }) })
		default:
			s.fail("a field of an entity")
		}
	})
}

// attribute reads an attribute, whose value comes after its name.
func (s *scanner) attribute(value func(name string)) {
	var name string
	s.object(func(member []byte) {
		if string(member) == "key" {
			name = s.name()
		} else {
			value(name)
		}
	})
}

// name reads a string of which there are few.
func (s *scanner) name() string {
	text := s.text()
	name, ok := s.names[string(text)]
	if !ok {
		name = string(text)
		s.names[name] = name
	}
	return name
}
