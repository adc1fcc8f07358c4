package mix

import (
	"hash/maphash"
	"slices"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// index numbers the values of an attribute, from 1 in the order they came, and
// has for each the lives that ever had it, oldest first. Whether one has it at
// a block its version tells.
type index struct {
	numbers map[string]uint32
	values  []string
	lists   [][]int32
}

// newIndex returns an index with a value that nobody has as number 0, and the
// values that questions name before anybody may have them.
func newIndex(values []string) index {
	x := index{numbers: map[string]uint32{}}
	for _, value := range values {
		x.number(value)
	}
	return x
}

// number returns the number of a value, a new one if need be.
func (x *index) number(value string) uint32 {
	n, ok := x.numbers[value]
	if !ok {
		n = uint32(len(x.values))
		x.numbers[value] = n
		x.values = append(x.values, value)
		x.lists = append(x.lists, nil)
	}
	return n
}

// post enters a life into the list of a value, if it is one.
func (x *index) post(number uint32, l int32) {
	if number > 0 {
		x.lists[number] = insert(x.lists[number], l)
	}
}

// insert adds a number to a sorted list that may have it. Nearly always it is
// the highest.
func insert(list []int32, l int32) []int32 {
	if n := len(list); n == 0 || list[n-1] < l {
		return append(list, l)
	}
	if i, found := slices.BinarySearch(list, l); !found {
		return slices.Insert(list, i, l)
	}
	return list
}

// hashes stand for what is not kept of an entity. They never leave the process.
type hashes struct {
	attributes uint64 // with the content type
	content    uint64
	size       uint32 // of the content
}

var seed = maphash.MakeSeed()

// newHashes takes attributes in whatever order: sums need no sorting, and what one
// wrong attribute adds is as good as random.
func newHashes(e *entity.Entity) hashes {
	sum := splitmix.Scramble(maphash.String(seed, e.ContentType))
	for name, value := range e.StringAttributes {
		sum += splitmix.Scramble(maphash.String(seed, name) ^ splitmix.Scramble(maphash.String(seed, value)))
	}
	for name, value := range e.NumericAttributes {
		sum += splitmix.Scramble(maphash.String(seed, name) ^ splitmix.Scramble(value+1)<<1)
	}
	return hashes{sum, maphash.Bytes(seed, e.Content), uint32(len(e.Content))}
}
