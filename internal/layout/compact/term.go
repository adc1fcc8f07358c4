package compact

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/varvedb/varve/store/entity"
)

// term is an attribute value in postings.
type term struct {
	attr  int64
	value string // its encoding: encodings sort as the values do
}

// wholeText is the length up to which a string stands in postings as it is. Of
// a longer one stand its first prefixText bytes and a hash, and what is found by
// it must be compared.
const (
	wholeText  = 32
	prefixText = 24
	hashedText = prefixText + 9 // longer than any whole text
)

func encodeText(text []byte) string {
	if len(text) <= wholeText {
		return string(text)
	}
	sum := sha256.Sum256(text)
	buf := make([]byte, 0, hashedText)
	return string(append(append(buf, text[:prefixText]...), sum[:hashedText-prefixText]...))
}

// encodeNumber keeps the order of numbers: the count of bytes, then the bytes.
func encodeNumber(n uint64) string {
	var b [9]byte
	binary.BigEndian.PutUint64(b[1:], n)
	i := 1
	for i < len(b) && b[i] == 0 {
		i++
	}
	b[i-1] = byte(len(b) - i)
	return string(b[i-1:])
}

// decodeNumber is the inverse of encodeNumber.
func decodeNumber(value []byte) (n uint64) {
	for _, b := range value[min(1, len(value)):] {
		n = n<<8 | uint64(b)
	}
	return n
}

// terms returns everything that a version is found by.
func (v *version) terms() ([]term, error) {
	r, err := parse(v.data)
	if err != nil {
		return nil, err
	}
	list := make([]term, 0, 24)
	list = append(list,
		term{attrOwner, string(r.owner)},
		term{attrCreator, string(r.creator)},
		term{attrExpiration, encodeNumber(uint64(v.expires))},
		term{attrModified, encodeNumber(uint64(v.from))})
	err = r.each(func(a *attribute) bool {
		t := term{attr: a.id}
		if a.kind == stringName {
			t.value = encodeText(a.text)
		} else {
			t.value = encodeNumber(a.number)
		}
		if a.id == 0 {
			t.attr, t.value = attrUnnamed, string(spelledName(a.kind, string(a.spelled)))+t.value
		}
		list = append(list, t)
		return true
	})
	return list, err
}

// hashKey is the number that a key is found by. Keys may be chosen to share it:
// what is found by it is compared with the key.
func hashKey(k entity.Key) int64 {
	sum := sha256.Sum256(k[:])
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
