package eav

import (
	"fmt"
	"testing"

	"github.com/varvedb/varve/store/entity"
)

func BenchmarkDecode(b *testing.B) {
	e := &entity.Entity{StringAttributes: map[string]string{}, NumericAttributes: map[string]uint64{}}
	for i := range 5 {
		e.StringAttributes[fmt.Sprintf("attr_%d", i)] = "value_of_attribute"
	}
	for i := range 3 {
		e.NumericAttributes[fmt.Sprintf("num_%d", i)] = uint64(i * 1000)
	}
	s, n := encodeAttributes(textsOf(e), numbersOf(e))
	b.ReportAllocs()
	for b.Loop() {
		var g entity.Entity
		if err := decodeAttributes(&g, []byte(s), []byte(n)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	e := &entity.Entity{StringAttributes: map[string]string{}, NumericAttributes: map[string]uint64{}}
	for i := range 5 {
		e.StringAttributes[fmt.Sprintf("attr_%d", i)] = "value_of_attribute"
	}
	for i := range 3 {
		e.NumericAttributes[fmt.Sprintf("num_%d", i)] = uint64(i * 1000)
	}
	b.ReportAllocs()
	for b.Loop() {
		encodeAttributes(textsOf(e), numbersOf(e))
	}
}
