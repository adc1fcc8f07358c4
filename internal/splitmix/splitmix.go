// Package splitmix has the parts of SplitMix64 (Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", 2014) with which data generators
// can compute any number of a sequence directly.
package splitmix

import (
	"encoding/binary"
	"math/bits"
)

// Step is the increment of a generator's state: 2⁶⁴ over the golden ratio.
const Step = 0x9e3779b97f4a7c15

// Mix is the finaliser: a permutation of the 64-bit numbers in which each input
// bit flips each output bit with probability one half. Mix(0) is 0.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Scramble returns the next number of a generator in state x: a permutation
// that maps neighbours to unrelated numbers.
func Scramble(x uint64) uint64 { return Mix(x + Step) }

// Below maps a random number to 0 … n-1. Its bias, n/2⁶⁴, is negligible.
func Below(random, n uint64) uint64 {
	high, _ := bits.Mul64(random, n)
	return high
}

// Fill fills b with the bytes of a generator with the given seed.
func Fill(b []byte, seed uint64) {
	for ; len(b) >= 8; b = b[8:] {
		seed += Step
		binary.LittleEndian.PutUint64(b, Mix(seed))
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], Scramble(seed))
	copy(b, last[:])
}
