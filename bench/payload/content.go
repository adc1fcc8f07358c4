package payload

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
)

// Contents make payloads of so many bytes: JSON with attributes such as entities have, and bytes
// that do not compress.
var Contents = map[string]func(r *rand.Rand, n int) []byte{"json": jsonLike, "random": random}

// Of the values of an attribute a few are frequent, as states are, and of the numbers most are
// small.
const (
	names  = 40
	values = 64
)

// jsonLike is a list of records, each with the key of another entity, some attributes and a time.
// The end is padded with spaces.
func jsonLike(r *rand.Rand, n int) []byte {
	text := append(make([]byte, 0, n+512), '[')
	at := 1_700_000_000 + r.IntN(1_000_000)
	for {
		whole := len(text)
		if whole > 1 {
			text = append(text, ',')
		}
		text = append(text, `{"key":"0x`...)
		text = hexadecimal(text, r.Uint64())
		text = hexadecimal(text, r.Uint64())
		at += r.IntN(60)
		text = strconv.AppendInt(append(text, `","time":`...), int64(at), 10)
		for range 3 {
			u := r.Float64()
			text = strconv.AppendInt(append(text, `,"attr_`...), int64(r.IntN(names)), 10)
			text = strconv.AppendInt(append(text, `":"value-`...), int64(u*u*u*values), 10)
			text = append(text, '"')
		}
		text = strconv.AppendFloat(append(text, `,"reading":`...), float64(r.IntN(100_000))/100, 'f', 2, 64)
		text = strconv.AppendInt(append(text, `,"count":`...), 1<<r.IntN(8), 10)
		text = append(text, '}')
		if len(text)+1 > n {
			text = text[:min(whole, n-1)]
			break
		}
	}
	text = append(text, ']')
	for len(text) < n {
		text = append(text, ' ')
	}
	return text
}

func hexadecimal(text []byte, v uint64) []byte {
	digits := strconv.FormatUint(v|1<<63, 16) // all 16 digits
	return append(text, digits...)
}

func random(r *rand.Rand, n int) []byte {
	text := make([]byte, 0, n+8)
	for len(text) < n {
		text = binary.LittleEndian.AppendUint64(text, r.Uint64())
	}
	return text[:n]
}
