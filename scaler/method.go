package scaler

import (
	"fmt"
	"iter"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Source is a history that can be read more than once, each time with the same
// blocks: of a profile, a block tar, a database.
type Source func() iter.Seq2[entity.Block, error]

// Method is where in time copies go.
type Method uint8

// The methods. A source of b blocks, counted from its first number to its last,
// is an epoch; n is the factor.
const (
	// Hybrid puts half of each copy's entities beside the original, as
	// Duplicate does, and the other half into an epoch of the copy's own, as
	// Temporal does. The result has n epochs, the first with (n+1)/2 times as
	// much as the source in each block, the others with half. Which half an
	// entity is in follows from its key. A reference to one in the later half
	// may come before it: that is the price of not remembering entities.
	Hybrid Method = iota

	// Duplicate puts all copies beside the original: n times as much in the
	// same b blocks.
	Duplicate

	// Temporal puts copy c into an epoch of its own, c×b blocks later: as much
	// a block as in the source, for n×b blocks.
	Temporal
)

var methodNames = [...]string{"hybrid", "duplicate", "temporal"}

// String returns the method's name.
func (m Method) String() string {
	if int(m) < len(methodNames) {
		return methodNames[m]
	}
	return fmt.Sprintf("method(%d)", uint8(m))
}

// ParseMethod is the inverse of Method.String.
func ParseMethod(name string) (Method, error) {
	if i := slices.Index(methodNames[:], name); i >= 0 {
		return Method(i), nil
	}
	return 0, fmt.Errorf("unknown method %q: want hybrid, duplicate or temporal", name)
}
