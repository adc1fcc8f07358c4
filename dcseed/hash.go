package dcseed

import (
	"encoding/binary"
	"math/bits"
)

// Randomness here is a hash of what it is for and never the next number of a
// generator, so that any value can be computed without those before it.

// golden is 2⁶⁴ divided by the golden ratio, the step of SplitMix64.
const golden = 0x9E3779B97F4A7C15

// mix64 is the output function of SplitMix64: a bijection in which each bit of
// the input changes each bit of the output with probability one half.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// below maps a hash to 0 … n-1.
func below(hash, n uint64) uint64 {
	high, _ := bits.Mul64(hash, n)
	return high
}

// source is the randomness of one entity.
type source uint64

// field names what a draw is for.
type field uint8

const (
	fieldStatus field = iota + 1
	fieldRegion
	fieldVMType
	fieldCPU
	fieldRAM
	fieldPrice
	fieldHours
	fieldTenant
	fieldLifeBand
	fieldLife
	fieldPayload
)

func newSource(seed uint64, class Class, dc, n int) source {
	return source(mix64(mix64(seed+uint64(class)*golden) ^ uint64(dc)<<32 ^ uint64(n)))
}

// draw returns the hash for a field of the version that the entity's turn made;
// turn 0 is its creation.
func (s source) draw(f field, turn uint64) uint64 {
	return mix64(uint64(s) ^ mix64(uint64(f)<<56|turn))
}

// fill writes the bytes of SplitMix64 seeded with seed.
func fill(b []byte, seed uint64) {
	for len(b) >= 8 {
		seed += golden
		binary.LittleEndian.PutUint64(b, mix64(seed))
		b = b[8:]
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], mix64(seed+golden))
		copy(b, last[:])
	}
}
