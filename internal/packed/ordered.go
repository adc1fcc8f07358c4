package packed

import "encoding/binary"

// AppendOrdered appends a number so that bytes sort as numbers do: how many bytes it has,
// then these.
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

// Ordered is the inverse of AppendOrdered. It does not look at the length.
func Ordered[T string | []byte](value T) (n uint64) {
	for i := 1; i < len(value); i++ {
		n = n<<8 | uint64(value[i])
	}
	return n
}
