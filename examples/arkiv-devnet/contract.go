package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store/entity"
)

//go:embed contract.json
var contractJSON string

var contract = mustABI(contractJSON)

func mustABI(text string) abi.ABI {
	a, err := abi.JSON(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return a
}

// The arguments of the contract's execute. The names are from the ABI.
type (
	contractOp struct {
		OperationType uint8
		EntityKey     [32]byte
		Payload       []byte
		ContentType   struct{ Data [4][32]byte }
		Attributes    []contractAttribute
		ExpiresAt     uint32
		NewOwner      common.Address
	}
	contractAttribute struct {
		Name      [32]byte
		ValueType uint8
		Value     [4][32]byte
	}
)

// The types of an attribute's value.
const (
	valueNumber = 1
	valueString = 2
	valueKey    = 3
)

func decodeCall(input []byte) ([]contractOp, error) {
	execute := contract.Methods["execute"]
	if !bytes.HasPrefix(input, execute.ID) {
		return nil, errors.New("the contract has one function, execute")
	}
	values, err := execute.Inputs.Unpack(input[len(execute.ID):])
	if err != nil {
		return nil, err
	}
	var ops []contractOp
	if err := execute.Inputs.Copy(&ops, values); err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return nil, errors.New("no operations")
	}
	return ops, nil
}

func joined(words [4][32]byte) []byte {
	var all []byte
	for _, w := range words {
		all = append(all, w[:]...)
	}
	return all
}

func text(padded []byte) string { return string(bytes.TrimRight(padded, "\x00")) }

// content converts an operation into the processor's form.
func (o *contractOp) content() (c chain.Create, err error) {
	if err := o.check(); err != nil {
		return c, err
	}
	c = chain.Create{ContentType: text(joined(o.ContentType.Data)), Payload: o.Payload, Strings: map[string]string{}, Numbers: map[string]uint64{}}
	for _, a := range o.Attributes {
		name := text(a.Name[:])
		switch a.ValueType {
		case valueNumber:
			n := new(big.Int).SetBytes(a.Value[0][:])
			if !n.IsUint64() {
				return c, fmt.Errorf("attribute %q: Varve's numbers have 64 bits", name)
			}
			c.Numbers[name] = n.Uint64()
		case valueString:
			c.Strings[name] = text(joined(a.Value))
		case valueKey:
			c.Strings[name] = entity.Key(a.Value[0]).String()
		default:
			return c, fmt.Errorf("attribute %q: unknown type %d", name, a.ValueType)
		}
	}
	return c, nil
}

// mirror is an operation of a call to the contract, converted into the
// processor's form, because a follower of the chain reads only that form.
type mirror struct {
	input []byte
	events
}

// call executes a call to the contract.
func (s *state) call(ctx context.Context, tx common.Hash, from common.Address, input []byte) (mirrors []mirror, err error) {
	ops, err := decodeCall(input)
	if err != nil {
		return nil, err
	}
	err = s.atomic(func() error {
		created := 0
		for i := range ops {
			m, err := s.mirror(ctx, tx, from, &ops[i], &created)
			if err != nil {
				return fmt.Errorf("operation %d: %w", i, err)
			}
			mirrors = append(mirrors, m)
		}
		return nil
	})
	return mirrors, err
}

// mirror executes an operation and returns its mirror; created counts the
// earlier creations in the call.
func (s *state) mirror(ctx context.Context, tx common.Hash, from common.Address, o *contractOp, created *int) (m mirror, err error) {
	if n := int(o.OperationType); n == 0 || n >= len(kinds) || kinds[n] == entity.Expire {
		return m, fmt.Errorf("unknown type %d", n)
	}
	c := change{kind: kinds[o.OperationType], key: o.EntityKey, owner: o.NewOwner}
	if c.kind == entity.Create {
		c.key = keyOf(tx, o.Payload, *created)
		*created++
	}
	if c.btl, err = s.lifetime(ctx, &c, uint64(o.ExpiresAt)); err != nil {
		return m, err
	}
	if err := s.do(ctx, from, c, &m.events); err != nil {
		return m, err
	}
	var ops chain.Operations
	switch c.kind {
	case entity.Delete:
		ops.Deletes = []entity.Key{c.key}
	case entity.ExtendBTL:
		ops.Extensions = []chain.Extension{{Key: c.key, Blocks: c.btl}}
	case entity.ChangeOwner:
		ops.OwnerChanges = []chain.OwnerChange{{Key: c.key, Owner: entity.Address(c.owner)}}
	default:
		content, err := o.content()
		if err != nil {
			return m, err
		}
		if content.BTL = c.btl; c.kind == entity.Create {
			ops.Creates = []chain.Create{content}
		} else {
			ops.Updates = []chain.Update{{Key: c.key, Create: content}}
		}
	}
	if m.input, err = ops.Encode(); err != nil {
		return m, err
	}
	return m, s.acceptable(m.input, m.processor)
}

// lifetime converts the expiration block of an operation into a lifetime in
// blocks.
func (s *state) lifetime(ctx context.Context, c *change, until uint64) (btl uint64, err error) {
	var old life
	switch c.kind {
	case entity.Delete, entity.ChangeOwner:
		return 0, nil
	case entity.Update, entity.ExtendBTL:
		if old, err = s.find(ctx, c.key); err != nil {
			return 0, err
		}
	}
	switch {
	case c.kind == entity.Update && until == 0:
		return old.expires - s.number, nil // keeps it
	case until <= s.number:
		return 0, fmt.Errorf("block %d, to which it is to live, is not after block %d", until, s.number)
	case c.kind == entity.ExtendBTL && until <= old.expires:
		return 0, fmt.Errorf("it lives to block %d, to extend it to %d is none", old.expires, until)
	case c.kind == entity.ExtendBTL:
		return until - old.expires, nil
	}
	return until - s.number, nil
}
