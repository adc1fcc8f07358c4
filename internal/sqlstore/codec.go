package sqlstore

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Codec translates values and placeholders between the contract of package
// driver and a native engine.
type Codec interface {
	// Encode translates an argument into a value that the engine's database/sql
	// driver binds.
	Encode(arg any) any
	// DecodeUint reads back what Encode made of a uint64.
	DecodeUint(src any) (uint64, error)
	// Rebind rewrites the "?" placeholders of a statement.
	Rebind(sql string) string
}

// OrderedBlob is the codec of engines with signed integers and dynamic types
// (SQLite): a Uint is an integer up to 2⁶³−1 and a big-endian 8-byte BLOB above
// it. A BLOB sorts after every integer, so the order is that of uint64, and
// values in practical use stay plain integers that other tools can read.
type OrderedBlob struct{}

// Encode implements Codec.
func (OrderedBlob) Encode(arg any) any {
	n, ok := arg.(uint64)
	switch {
	case !ok:
		return arg
	case n <= math.MaxInt64:
		return int64(n)
	}
	return binary.BigEndian.AppendUint64(nil, n)
}

// DecodeUint implements Codec.
func (OrderedBlob) DecodeUint(src any) (uint64, error) {
	switch v := src.(type) {
	case int64:
		if v >= 0 {
			return uint64(v), nil
		}
	case []byte:
		if len(v) == 8 {
			return binary.BigEndian.Uint64(v), nil
		}
	}
	return 0, fmt.Errorf("not an unsigned integer: %T %v", src, src)
}

// Rebind implements Codec.
func (OrderedBlob) Rebind(sql string) string { return sql }

// Biased is the codec of engines with signed 64-bit integers only (Postgres): a
// Uint n is stored as n − 2⁶³, which keeps the order.
type Biased struct{}

// Encode implements Codec.
func (Biased) Encode(arg any) any {
	if n, ok := arg.(uint64); ok {
		return int64(n ^ 1<<63)
	}
	return arg
}

// DecodeUint implements Codec.
func (Biased) DecodeUint(src any) (uint64, error) {
	if v, ok := src.(int64); ok {
		return uint64(v) ^ 1<<63, nil
	}
	return 0, fmt.Errorf("not a 64-bit integer: %T %v", src, src)
}

// Rebind numbers the placeholders: "?" becomes "$1", "$2", ….
func (Biased) Rebind(sql string) string {
	if !strings.Contains(sql, "?") {
		return sql
	}
	var b strings.Builder
	n, quoted := 0, false
	for i := range len(sql) {
		switch c := sql[i]; {
		case c == '\'':
			quoted = !quoted
			b.WriteByte(c)
		case c == '?' && !quoted:
			n++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
