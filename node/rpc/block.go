package rpc

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// blockTag is a block number, or one of Ethereum's names for blocks such as
// "latest".
type blockTag struct {
	word   string // such as "latest"; synonyms are replaced by one word
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

// given returns the block number, if the caller gave a number.
func (b *blockTag) given() (number uint64, ok bool) {
	if b == nil || b.word != "" {
		return 0, false
	}
	return min(b.number, entity.MaxBlock), true
}

// at resolves the block in a snapshot of the head. A store does not know which
// blocks its chain calls final: a block counts as final when it is so deep that
// its reorganisation would not be reported to clients. "Earliest" is the first
// block that is kept, because clients start reading there.
func (b *blockTag) at(ctx context.Context, snap *store.Snapshot) (uint64, error) {
	head := snap.Head().Number
	switch {
	case b == nil || b.word == "latest":
		return head, nil
	case b.word == "earliest":
		oldest, err := snap.OldestHeader(ctx)
		return oldest.Number, err
	case b.word == "finalized":
		return max(head, maxSent) - maxSent, nil
	}
	return min(b.number, entity.MaxBlock), nil
}

// blockRef identifies a block by number, by name, or by hash.
type blockRef struct {
	tag  blockTag
	hash *topic
}

// UnmarshalJSON implements json.Unmarshaler. An object has either blockHash or
// blockNumber, as in EIP-1898.
func (r *blockRef) UnmarshalJSON(text []byte) error {
	if text[0] == '{' {
		var named struct {
			Hash   *topic    `json:"blockHash"`
			Number *blockTag `json:"blockNumber"`
		}
		if err := json.Unmarshal(text, &named); err != nil {
			return err
		}
		if (named.Hash == nil) == (named.Number == nil) {
			return errors.New("give blockHash or blockNumber")
		}
		if r.hash = named.Hash; r.hash == nil {
			r.tag = *named.Number
		}
		return nil
	}
	if len(text) == len(`"0x"`)+2*len(topic{}) {
		r.hash = new(topic)
		return json.Unmarshal(text, r.hash)
	}
	return r.tag.UnmarshalJSON(text)
}

// The first parameter of a method about a block: by number, or by hash.
func byNumber(r *blockRef) any { return &r.tag }
func byEither(r *blockRef) any { return r }
func byHash(r *blockRef) any {
	r.hash = new(topic)
	return r.hash
}

// ofBlock makes a method that answers about a block, or null if there is no
// such block.
func ofBlock(
	by func(*blockRef) any,
	answer func(h *Handler, ctx context.Context, c *call, snap *store.Snapshot, b store.BlockHeader) error,
) method {
	return func(h *Handler, ctx context.Context, c *call) error {
		var ref blockRef
		if err := c.param(0, "the block", false, by(&ref)); err != nil {
			return err
		}
		snap, err := h.ents.At(ctx, store.Head)
		if err != nil {
			return err
		}
		defer snap.Close()
		var b store.BlockHeader
		var ok bool
		if ref.hash != nil {
			b, ok, err = h.hashes.find(ctx, snap, *ref.hash)
		} else if number, wrong := ref.tag.at(ctx, snap); wrong != nil {
			err = wrong
		} else {
			b, err = snap.HeaderAt(ctx, number)
			ok = !b.Empty && b.Number == number
		}
		if err != nil {
			return err
		}
		if !ok {
			c.out = append(c.out, null...)
			return nil
		}
		return answer(h, ctx, c, snap, b)
	}
}

// block serves eth_getBlockByNumber and eth_getBlockByHash. The second
// parameter, which asks for whole transactions, has no effect, because a store
// keeps no transactions.
func (h *Handler) block(ctx context.Context, c *call, snap *store.Snapshot, b store.BlockHeader) error {
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
