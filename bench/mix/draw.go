package mix

import "github.com/varvedb/varve/store/entity"

// tries returns how often something visible is looked for at random among n. Of
// the chunks of streams one in some hundred is left after a while.
func tries(n int) int { return min(64*n, 20_000) }

// pick returns the key of an entity that is visible at a block, or of the last
// one looked at when none seems to be.
func (d *draws) pick(block uint64) entity.Key {
	n := d.o.born(block)
	if n == 0 {
		return entity.Key{1} // of nobody
	}
	l := int32(0)
	for range tries(n) {
		if l = int32(n - 1 - d.r.IntN(n)); d.o.at(l, block) != none {
			break
		}
	}
	return d.o.lives[l].key
}

// visible returns a life of a list that is visible at a block, or none.
func (d *draws) visible(list []int32, block uint64) int32 {
	if len(list) == 0 {
		return none
	}
	for range tries(len(list)) {
		if l := list[d.r.IntN(len(list))]; d.o.at(l, block) != none {
			return l
		}
	}
	return none
}

// present draws the number of a value, of which there are so many with 0, that
// some visible entity has; 0 if none seems to be.
func (d *draws) present(values int, of func(number uint32) question) uint32 {
	if values < 2 {
		return 0
	}
	for range tries(values) {
		n := uint32(1 + d.r.IntN(values-1))
		q := of(n)
		if len(d.o.answer(&q, d.head, 1, nil)) > 0 {
			return n
		}
	}
	return 0
}
