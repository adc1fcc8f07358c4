package mix

import (
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// attrGPU is the number that is asked for; the strings are in asked.
const attrGPU = "allocatable_gpu"

const (
	typeVote      = "vote"
	typeProposal  = "proposal"
	statusPending = "pending"
	statusActive  = "active"
)

// What is asked for where nothing that could be asked for is there.
const absent = "no such value"

var nobody = entity.Address{0xff, 0xff, 0xff, 0xff}

// index numbers the values of an attribute, from 1 in the order they came, and
// has for each the lives that ever had it, oldest first. Whether one has it at
// a block its version tells.
type index[T comparable] struct {
	numbers map[T]uint32
	values  []T
	lists   [][]int32
}

// newIndex returns an index with a value that nobody has as number 0, and the
// values that questions name before anybody may have them.
func newIndex[T comparable](nobodys T, named ...T) index[T] {
	x := index[T]{numbers: map[T]uint32{}, values: []T{nobodys}, lists: make([][]int32, 1)}
	for _, value := range named {
		x.number(value)
	}
	return x
}

// number returns the number of a value, a new one if need be.
func (x *index[T]) number(value T) uint32 {
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
func (x *index[T]) post(number uint32, l int32) {
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
