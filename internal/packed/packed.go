// Package packed reads bytes that were written with varints and length
// prefixes, such as rows of layout compact and postings of events. A reader
// remembers a premature end, so that callers check for it once, at the end.
package packed

import (
	"encoding/binary"
	"slices"
)

// Reader reads from the beginning of Rest. After an error everything it returns
// is zero, and Rest is empty.
type Reader struct {
	Rest []byte
	Torn bool // something ended too early
}

// Uint reads a varint.
func (r *Reader) Uint() uint64 {
	n, size := binary.Uvarint(r.Rest)
	if size <= 0 {
		r.Tear()
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

// Bytes reads n bytes, which share memory with Rest.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.Rest)) {
		r.Tear()
		return nil
	}
	b := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return b
}

// Text reads a length and that many bytes.
func (r *Reader) Text() []byte { return r.Bytes(r.Uint()) }

// Count reads the number of following items, each at least a byte long. A
// number above the remaining bytes is damage.
func (r *Reader) Count() uint64 {
	n := r.Uint()
	if n > uint64(len(r.Rest)) {
		r.Tear()
		return 0
	}
	return n
}

// Tear marks the input as damaged.
func (r *Reader) Tear() { r.Rest, r.Torn = nil, true }

// AppendText appends a length and the bytes of a text.
func AppendText[T string | []byte](to []byte, s T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// AppendOrdered appends a number so that byte order equals numeric order: first
// its length in bytes, then the bytes.
func AppendOrdered(to []byte, n uint64) []byte {
	var b [9]byte
	binary.BigEndian.PutUint64(b[1:], n)
	i := 1
	for i < len(b) && b[i] == 0 {
		i++
	}
	b[i-1] = byte(len(b) - i)
	return append(to, b[i-1:]...)
}

// Ordered is the inverse of AppendOrdered. It ignores the length byte.
func Ordered[T string | []byte](value T) (n uint64) {
	for i := 1; i < len(value); i++ {
		n = n<<8 | uint64(value[i])
	}
	return n
}

// Names returns the sorted keys of a map, in buf if they fit.
func Names[V any](buf []string, m map[string]V) []string {
	buf = buf[:0]
	for name := range m {
		buf = append(buf, name)
	}
	slices.Sort(buf)
	return buf
}
