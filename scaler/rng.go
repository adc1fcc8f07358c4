package scaler

import (
	"encoding/binary"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// The purposes of random numbers; each purpose has its own sequence.
const (
	forKey uint64 = (iota + 1) << 32
	forLife
	forPresence
	forText
	forNumber
	forSize
	forContent
	forContentType
	forAccount
	forOwner
	forNewOwner
	forRuns
	forBatches
)

// derive returns the start of a sequence for a purpose.
func derive(seed, purpose uint64) uint64 { return splitmix.Mix(seed + purpose*splitmix.Step) }

// rng is SplitMix64.
type rng struct{ state uint64 }

func (r *rng) next() uint64 {
	r.state += splitmix.Step
	return splitmix.Mix(r.state)
}

// below returns a number in [0, n).
func (r *rng) below(n uint64) uint64 { return splitmix.Below(r.next(), n) }

// chance is true with a probability of permille/1,000.
func (r *rng) chance(permille uint64) bool { return r.below(1000) < permille }

// entitySeed is the seed of everything random about an entity. It differs for
// each kind and number, because mix is a bijection and numbers stay below 2^56.
func entitySeed(seed uint64, kind int, number uint64) uint64 {
	return splitmix.Mix(splitmix.Mix(seed) + (uint64(kind)<<56 | number))
}

// entityKey is unique within a stream: its first word is a bijection of the
// entity's seed.
func entityKey(seed uint64) (k entity.Key) {
	binary.BigEndian.PutUint64(k[:], derive(seed, forKey))
	for i := 1; i < 4; i++ {
		binary.BigEndian.PutUint64(k[8*i:], derive(seed, forKey+uint64(i)))
	}
	return k
}

// address derives the account of a number.
func address(seed, account uint64) (a entity.Address) {
	r := rng{derive(splitmix.Mix(seed)+account, forAccount)}
	binary.BigEndian.PutUint64(a[:], r.next())
	binary.BigEndian.PutUint64(a[8:], r.next())
	binary.BigEndian.PutUint32(a[16:], uint32(r.next()>>32))
	return a
}

// Bar assigns Permille of 1,000 values to From..To, both included, all equally
// likely.
type Bar struct{ Permille, From, To uint64 }

// Histogram is a distribution of whole numbers. Its bars are in increasing
// order, do not overlap, and add up to 1,000.
type Histogram []Bar

func (h Histogram) draw(r *rng) uint64 {
	at := r.below(1000)
	for _, b := range h {
		if at < b.Permille {
			if b.From == b.To {
				return b.From
			}
			return b.From + r.below(b.To-b.From+1)
		}
		at -= b.Permille
	}
	return 0
}

func (h Histogram) high() uint64 { return h[len(h)-1].To }

// Choice is one value of a text attribute. Weights are relative.
type Choice struct {
	Value  string
	Weight uint64
}

func choose(r *rng, choices []Choice) string {
	sum := uint64(0)
	for _, c := range choices {
		sum += c.Weight
	}
	at := r.below(sum)
	for _, c := range choices {
		if at < c.Weight {
			return c.Value
		}
		at -= c.Weight
	}
	return ""
}
