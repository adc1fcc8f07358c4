package store

import (
	"math"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
)

// The vocabulary of package entity, so that a node imports one package.
type (
	Key     = entity.Key
	Address = entity.Address
	Entity  = entity.Entity
	Block   = entity.Block
	Op      = entity.Op
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

// Order sorts the results of a query by one attribute; see layout.Order.
type Order = layout.Order

// Parts says what to fetch of the entities that a query finds.
type Parts = layout.Parts

// The parts. Keys are always there.
const (
	Metadata   = layout.Metadata
	Attributes = layout.Attributes
	Content    = layout.Content
)
