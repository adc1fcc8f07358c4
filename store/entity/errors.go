package entity

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: no entity with this key is live.
	ErrNotFound = errors.New("entity not found")
	// ErrExists: an entity with this key is live already.
	ErrExists = errors.New("entity exists already")
	// ErrInvalid: an operation or a block is malformed.
	ErrInvalid = errors.New("invalid")
)

// OpError identifies the operation of a block that could not be applied.
type OpError struct {
	Block            uint64
	TxIndex, OpIndex uint32
	Kind             Kind
	Key              Key
	Err              error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("block %d, tx %d, op %d: %s %s: %v", e.Block, e.TxIndex, e.OpIndex, e.Kind, e.Key, e.Err)
}

func (e *OpError) Unwrap() error { return e.Err }
