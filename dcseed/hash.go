package dcseed

import "github.com/varvedb/varve/internal/splitmix"

// Randomness here is a hash of what it is for and never the next number of a
// generator, so that any value can be computed without those before it.

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
