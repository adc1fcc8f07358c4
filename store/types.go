package store

import (
	"math"

	"github.com/varvedb/varve/store/entity"
)

// Head, given to Entities.At, means the last block.
const Head = math.MaxUint64

// Order sorts the results of a query by one attribute. Entities without it are last,
// also where it descends.
type Order struct {
	Name string
	Kind entity.AttributeKind // may be zero for attributes that begin with $
	Desc bool
}

// Parts says what to fetch of the entities that a query finds, beside their keys.
// Zero is everything.
type Parts uint8

// The parts.
const (
	Metadata   Parts = 1 << iota // owner, creator, blocks, sequence, content type
	Attributes                   // the user's attributes
	Content                      // the payload
)

func (p Parts) has(part Parts) bool { return p == 0 || p&part != 0 }
