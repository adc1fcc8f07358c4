package chain

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// RLP is Ethereum's encoding of nested lists of byte strings. This is the whole of
// what operations need. It accepts exactly what the chain's own decoder accepts: each
// length and integer in its shortest form, no list with more or fewer items.

// item is one value: its kind and its content, which is part of the input.
type item struct {
	list    bool
	content []byte
}

// next cuts the first item from b.
func next(b []byte) (it item, rest []byte, err error) {
	if len(b) == 0 {
		return it, nil, fmt.Errorf("%w: a value is missing", ErrRLP)
	}
	tag := b[0]
	if tag < 0x80 {
		return item{content: b[:1]}, b[1:], nil
	}
	it.list = tag >= 0xc0
	short := tag - 0x80
	if it.list {
		short = tag - 0xc0
	}
	b = b[1:]
	size := uint64(short)
	if short > 55 {
		if size, b, err = longSize(b, int(short-55)); err != nil {
			return it, nil, err
		}
	}
	if size > uint64(len(b)) {
		return it, nil, fmt.Errorf("%w: a value of %d bytes where %d are left", ErrRLP, size, len(b))
	}
	it.content = b[:size]
	if !it.list && size == 1 && short == 1 && it.content[0] < 0x80 {
		return it, nil, fmt.Errorf("%w: a byte below 128 with a length", ErrRLP)
	}
	return it, b[size:], nil
}

// longSize reads a size of n bytes, of which the first is not zero.
func longSize(b []byte, n int) (size uint64, rest []byte, err error) {
	if n > len(b) || b[0] == 0 {
		return 0, nil, fmt.Errorf("%w: a length that is cut off or begins with zero", ErrRLP)
	}
	for _, c := range b[:n] {
		size = size<<8 | uint64(c)
	}
	if size <= 55 {
		return 0, nil, fmt.Errorf("%w: a long form of length %d", ErrRLP, size)
	}
	return size, b[n:], nil
}

// reader reads the items of a list one after the other. After an error it gives zero
// values, so that callers look at the error once.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) next(list bool) []byte {
	if r.err != nil {
		return nil
	}
	var it item
	if it, r.rest, r.err = next(r.rest); r.err != nil {
		return nil
	}
	if it.list != list {
		r.err = fmt.Errorf("%w: a list where bytes belong, or bytes where a list belongs", ErrRLP)
		return nil
	}
	return it.content
}

func (r *reader) bytes() []byte { return r.next(false) }

// text returns a string. What is not UTF-8, which the chain takes and no store keeps,
// becomes U+FFFD byte by byte, as it does in the JSON of a node's answers.
func (r *reader) text() string {
	b := r.bytes()
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

func (r *reader) uint() uint64 {
	b := r.bytes()
	if r.err == nil && (len(b) > 8 || len(b) > 0 && b[0] == 0) {
		r.err = fmt.Errorf("%w: an integer above 64 bits, or with a leading zero", ErrRLP)
		return 0
	}
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// fixed fills dst with bytes of exactly its length.
func (r *reader) fixed(dst []byte) {
	b := r.bytes()
	if r.err == nil && len(b) != len(dst) {
		r.err = fmt.Errorf("%w: %d bytes where %d belong", ErrRLP, len(b), len(dst))
	}
	copy(dst, b)
}

// end checks that nothing is left.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%w: %d bytes more than the values", ErrRLP, len(r.rest))
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
