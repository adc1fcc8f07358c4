package chain

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// RLP is Ethereum's encoding of nested lists of byte strings. This reader
// covers the part that operations need, and accepts exactly the inputs that the
// chain's decoder accepts: each length and integer in its shortest form, and no
// list with more or fewer items.

// reader reads the items of a list one after the other. After an error it
// returns zero values, so that callers check the error once at the end.
type reader struct {
	rest []byte
	err  error
}

// fail keeps the first error.
func (r *reader) fail(format string, args ...any) []byte {
	r.err = fmt.Errorf("%w: %s", ErrRLP, fmt.Sprintf(format, args...))
	return nil
}

// cut removes and returns the first n bytes, which must exist.
func (r *reader) cut(n int) (b []byte) {
	b, r.rest = r.rest[:n], r.rest[n:]
	return b
}

// next returns the content of the next item, which must be a list or a byte
// string, as list says.
func (r *reader) next(list bool) []byte {
	switch {
	case r.err != nil:
		return nil
	case len(r.rest) == 0:
		return r.fail("a value is missing")
	case (r.rest[0] >= 0xc0) != list:
		return r.fail("a list where bytes belong, or bytes where a list belongs")
	case r.rest[0] < 0x80:
		return r.cut(1)
	}
	short := int(r.cut(1)[0] & 0x3f)
	size := uint64(short)
	if digits := short - 55; digits > 0 {
		if digits > len(r.rest) || r.rest[0] == 0 {
			return r.fail("a length that is cut off or begins with zero")
		}
		if size = integer(r.cut(digits)); size <= 55 {
			return r.fail("a long form of length %d", size)
		}
	}
	if size > uint64(len(r.rest)) {
		return r.fail("a value of %d bytes where %d are left", size, len(r.rest))
	}
	content := r.cut(int(size))
	if !list && short == 1 && content[0] < 0x80 {
		return r.fail("a byte below 128 with a length")
	}
	return content
}

// integer reads up to eight bytes.
func integer(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

func (r *reader) bytes() []byte { return r.next(false) }

// text returns a string. The chain accepts invalid UTF-8, but no store does:
// each invalid byte becomes U+FFFD, as in the JSON of a node's answers.
func (r *reader) text() string {
	b := r.bytes()
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

func (r *reader) uint() uint64 {
	b := r.bytes()
	if len(b) > 8 || len(b) > 0 && b[0] == 0 {
		b = r.fail("an integer above 64 bits, or with a leading zero")
	}
	return integer(b)
}

// fixed fills dst with a byte string of exactly its length.
func (r *reader) fixed(dst []byte) {
	b := r.bytes()
	if r.err == nil && len(b) != len(dst) {
		r.fail("%d bytes where %d belong", len(b), len(dst))
	}
	copy(dst, b)
}

// end checks that no bytes remain.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes more than the values", len(r.rest))
	}
	return r.err
}

// each reads a list whose items are lists themselves.
func (r *reader) each(what string, limit int, read func(*reader)) {
	r.items(what, limit, func(list *reader) {
		inner := reader{rest: list.next(true), err: list.err}
		if list.err == nil {
			read(&inner)
			list.err = inner.end()
		}
	})
}

// items reads a list; read takes one item at a time.
func (r *reader) items(what string, limit int, read func(*reader)) {
	list := reader{rest: r.next(true), err: r.err}
	for n := 0; list.err == nil && len(list.rest) > 0; n++ {
		if n == limit {
			list.err = fmt.Errorf("%w: above %d %s", ErrTooMany, limit, what)
			break
		}
		read(&list)
	}
	r.err = list.err
}

// appendBytes appends a byte string.
func appendBytes(dst, b []byte) []byte {
	if len(b) == 1 && b[0] < 0x80 {
		return append(dst, b[0])
	}
	return append(appendSize(dst, 0x80, len(b)), b...)
}

func appendUint(dst []byte, n uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return appendBytes(dst, b[bits.LeadingZeros64(n)/8:])
}

// appendList appends a list of items that are encoded already.
func appendList(dst, items []byte) []byte {
	return append(appendSize(dst, 0xc0, len(items)), items...)
}

func appendSize(dst []byte, tag byte, size int) []byte {
	if size <= 55 {
		return append(dst, tag+byte(size))
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(size))
	digits := b[bits.LeadingZeros64(uint64(size))/8:]
	return append(append(dst, tag+55+byte(len(digits))), digits...)
}
