package dcseed

import (
	"encoding/binary"
	"math/bits"

	"github.com/varvedb/varve/internal/splitmix"
)

// Randomness here is a hash of what it is for and never the next number of a
// generator, so that any value can be computed without those before it.

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
	return source(splitmix.Mix(splitmix.Mix(seed+uint64(class)*splitmix.Step) ^ uint64(dc)<<32 ^ uint64(n)))
}

// draw returns the hash for a field of the version that the entity's turn made;
// turn 0 is its creation.
func (s source) draw(f field, turn uint64) uint64 {
	return splitmix.Mix(uint64(s) ^ splitmix.Mix(uint64(f)<<56|turn))
}

// fill writes the bytes of SplitMix64 seeded with seed.
func fill(b []byte, seed uint64) {
	for len(b) >= 8 {
		seed += splitmix.Step
		binary.LittleEndian.PutUint64(b, splitmix.Mix(seed))
		b = b[8:]
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], splitmix.Mix(seed+splitmix.Step))
		copy(b, last[:])
	}
}
