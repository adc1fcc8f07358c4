package bench

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/varvedb/varve/internal/splitmix"
)

// stream separates the random numbers of one purpose from those of another, so
// that keys and attributes do not depend on the size of payloads.
type stream uint64

const (
	keyStream stream = iota + 1
	ownerStream
	attributeStream
	payloadStream
	updateStream
	sampleStream
	reorgStream
)

// random is a source of numbers that can be set to any place: to entity i in
// revision r of a stream, without what comes before.
type random struct {
	seed uint64
	pcg  *rand.PCG
	*rand.Rand
}

func newRandom(seed uint64) *random {
	pcg := rand.NewPCG(seed, 0)
	return &random{seed: seed, pcg: pcg, Rand: rand.New(pcg)}
}

// at sets the source to a place.
func (r *random) at(s stream, i, revision uint64) {
	r.pcg.Seed(splitmix.Scramble(r.seed^uint64(s)<<56), splitmix.Scramble(splitmix.Scramble(i)+revision))
}

// bytes fills p with what no compression makes smaller.
func (r *random) bytes(p []byte) {
	var next [8]byte
	for len(p) > 0 {
		binary.LittleEndian.PutUint64(next[:], r.pcg.Uint64())
		p = p[copy(p, next[:]):]
	}
}

// distinct draws k different numbers below n.
func (r *random) distinct(k, n int) []int {
	drawn, list := make(map[int]bool, k), make([]int, 0, k)
	for len(list) < k {
		if i := r.IntN(n); !drawn[i] {
			drawn[i] = true
			list = append(list, i)
		}
	}
	return list
}
