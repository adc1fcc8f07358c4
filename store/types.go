package store

import (
	"math"

	"github.com/varvedb/varve/store/entity"
)

// The vocabulary of package [entity], which documents it, so that a node imports one
// package.
type (
	Key     = entity.Key
	Address = entity.Address
	Entity  = entity.Entity
	Block   = entity.Block
	Op      = entity.Op
	Hash    = entity.Hash
	Digest  = entity.Digest
	OpError = entity.OpError
)

// The operations.
const (
	Create      = entity.Create
	Update      = entity.Update
	ExtendBTL   = entity.ExtendBTL
	ChangeOwner = entity.ChangeOwner
	Delete      = entity.Delete
	Expire      = entity.Expire
)

// MaxBlock is the expiration of an entity that never expires.
const MaxBlock = entity.MaxBlock

// Head, given to Entities.At, means the last block.
const Head = math.MaxUint64

// Order sorts the results of a query by one attribute. Entities without it are last,
// also where it descends.
type Order struct {
	Name string
	Kind entity.AttributeKind // may be zero for attributes that begin with $
	Desc bool
}

// MaxOrder is by how many attributes a query may sort.
const MaxOrder = 8

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
