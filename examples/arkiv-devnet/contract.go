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

// What the contract's execute takes. The names are those of the ABI.
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

// content makes of an operation what the processor's form has.
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

// mirror is a part of a call to the contract in the processor's form, in which a follower
// reads it.
type mirror struct {
	input []byte
	events
}

// call carries out a call to the contract. The operations of one mirror are carried out in
// the order of their kinds; where the call has another order there are several.
func (s *state) call(ctx context.Context, tx common.Hash, from common.Address, input []byte) (mirrors []mirror, err error) {
	ops, err := decodeCall(input)
	if err != nil {
		return nil, err
	}
	err = s.atomic(func() error {
		m := &mirrorWriter{state: s, tx: tx, from: from}
		for i := range ops {
			if err := m.add(ctx, &ops[i]); err != nil {
				return fmt.Errorf("operation %d: %w", i, err)
			}
		}
		mirrors, err = m.end()
		return err
	})
	return mirrors, err
}

type mirrorWriter struct {
	state   *state
	tx      common.Hash
	from    common.Address
	created int
	list    []mirror

	ops  chain.Operations
	open events
	rank int
}

// ranks is the order in which operations of the processor's form are carried out.
var ranks = map[entity.Kind]int{entity.Create: 1, entity.Delete: 2, entity.Update: 3, entity.ExtendBTL: 4, entity.ChangeOwner: 5}

func (m *mirrorWriter) add(ctx context.Context, o *contractOp) error {
	var kind entity.Kind
	for k, n := range kindOf {
		if n == o.OperationType && k != entity.Expire {
			kind = k
		}
	}
	rank, ok := ranks[kind]
	if !ok {
		return fmt.Errorf("unknown type %d", o.OperationType)
	}
	if rank < m.rank {
		if err := m.flush(); err != nil {
			return err
		}
	}
	m.rank = rank
	now := m.state.number
	c := change{kind: kind, key: o.EntityKey, owner: o.NewOwner, until: func(old uint64) (uint64, error) {
		until := uint64(o.ExpiresAt)
		switch {
		case kind == entity.Update && until == 0:
			return old, nil // keeps it
		case until <= now:
			return 0, fmt.Errorf("block %d, to which it is to live, is not after block %d", until, now)
		case kind == entity.ExtendBTL && until <= old:
			return 0, fmt.Errorf("it lives to block %d, to extend it to %d is none", old, until)
		}
		return until, nil
	}}
	if kind == entity.Create {
		c.key = keyOf(m.tx, o.Payload, m.created)
		m.created++
	}
	until, err := m.state.do(ctx, m.from, c, &m.open)
	if err != nil {
		return err
	}
	return m.note(o, c, until)
}

// note adds an operation to the open mirror.
func (m *mirrorWriter) note(o *contractOp, c change, until uint64) error {
	switch c.kind {
	case entity.Delete:
		m.ops.Deletes = append(m.ops.Deletes, c.key)
		return nil
	case entity.ExtendBTL:
		m.ops.Extensions = append(m.ops.Extensions, chain.Extension{Key: c.key, Blocks: until - m.state.number})
		return nil
	case entity.ChangeOwner:
		m.ops.OwnerChanges = append(m.ops.OwnerChanges, chain.OwnerChange{Key: c.key, Owner: entity.Address(c.owner)})
		return nil
	}
	content, err := o.content()
	if err != nil {
		return err
	}
	content.BTL = until - m.state.number
	if c.kind == entity.Create {
		m.ops.Creates = append(m.ops.Creates, content)
	} else {
		m.ops.Updates = append(m.ops.Updates, chain.Update{Key: c.key, Create: content})
	}
	return nil
}

func (m *mirrorWriter) flush() error {
	input, err := m.ops.Encode()
	if err != nil {
		return err
	}
	if err := m.state.acceptable(input, m.open.processor); err != nil {
		return err
	}
	m.list = append(m.list, mirror{input, m.open})
	m.ops, m.open, m.rank = chain.Operations{}, events{}, 0
	return nil
}

func (m *mirrorWriter) end() ([]mirror, error) {
	err := m.flush()
	return m.list, err
}
