package rpc

import (
	"context"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// blockTag is a block's number, or one of the words that Ethereum has for blocks.
type blockTag struct {
	word   string // of several of one meaning one
	number uint64 // when there is no word
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *blockTag) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"latest"`, `"pending"`, `""`, "null": // a store has no block that is still to be made
		b.word = "latest"
	case `"safe"`, `"finalized"`:
		b.word = "finalized"
	case `"earliest"`:
		b.word = "earliest"
	default:
		return (*quantity)(&b.number).UnmarshalJSON(text)
	}
	return nil
}

// given returns the block's number, if that is what is given.
func (b *blockTag) given() (number uint64, ok bool) {
	if b == nil || b.word != "" {
		return 0, false
	}
	return min(b.number, entity.MaxBlock), true
}

// at returns the number of the block in a store at a head. A store does not know what its
// chain calls final. What is so far back that its reorganisation would not be told is taken
// for it.
func (b *blockTag) at(head uint64) uint64 {
	switch {
	case b == nil || b.word == "latest":
		return head
	case b.word == "earliest":
		return 0
	case b.word == "finalized":
		return max(head, maxTold) - maxTold
	}
	return min(b.number, entity.MaxBlock)
}

// getBlockByNumber serves eth_getBlockByNumber. What is asked for of transactions, in the
// second parameter, does not matter: a store has none.
func (h *Handler) getBlockByNumber(ctx context.Context, c *call) error {
	var tag blockTag
	if err := c.param(0, "the block", false, &tag); err != nil {
		return err
	}
	return h.getBlock(ctx, c, func(snap *store.Snapshot) (store.BlockHeader, bool, error) {
		number := tag.at(snap.Head().Number)
		b, err := snap.HeaderAt(ctx, number)
		return b, !b.Empty && b.Number == number, err
	})
}

// getBlockByHash serves eth_getBlockByHash.
func (h *Handler) getBlockByHash(ctx context.Context, c *call) error {
	var hash topic
	if err := c.param(0, "the block's hash", false, &hash); err != nil {
		return err
	}
	return h.getBlock(ctx, c, func(snap *store.Snapshot) (store.BlockHeader, bool, error) {
		return h.hashes.find(ctx, snap, hash)
	})
}

// getBlock adds a block, or null where there is none.
func (h *Handler) getBlock(ctx context.Context, c *call, find func(*store.Snapshot) (store.BlockHeader, bool, error)) error {
	snap, err := h.ents.At(ctx, store.Head)
	if err != nil {
		return err
	}
	defer snap.Close()
	b, ok, err := find(snap)
	if err != nil {
		return err
	}
	if !ok {
		c.out = append(c.out, null...)
		return nil
	}
	var parent topic
	if b.Number > 0 {
		before, err := snap.HeaderAt(ctx, b.Number-1)
		if err != nil {
			return err
		}
		if !before.Empty {
			parent = blockHash(before)
		}
	}
	c.out = h.appendHeader(c.out, b, parent)
	c.out = append(c.out[:len(c.out)-1], `,"size":"0x0","transactions":[],"uncles":[]}`...)
	return nil
}
