package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// processor is the address to which the JavaScript SDK sends its operations,
// registry the contract to which the Python SDK sends them.
var (
	processor = common.Address(chain.Processor)
	registry  = common.Address(chain.Registry)
)

// topicOperation is the contract's only event.
var topicOperation = common.Hash(chain.TopicOperation)

// kinds are the operations by their numbers in the contract, from 1.
var kinds = [...]entity.Kind{
	1: entity.Create, 2: entity.Update, 3: entity.ExtendBTL, 4: entity.ChangeOwner, 5: entity.Delete, 6: entity.Expire,
}

// life has the facts about an entity that operations are checked against.
type life struct {
	owner   common.Address
	expires uint64
}

// state is the state after a block, which Varve stores, with the changes that
// the next block's transactions have made so far.
type state struct {
	snap    *store.Snapshot
	number  uint64
	changed map[entity.Key]*life // nil: the entity ended
}

// stateAfter opens the state from which the block after a given one is made.
func stateAfter(ctx context.Context, ents *store.Entities, number uint64) (*state, error) {
	snap, err := ents.At(ctx, number)
	if err != nil {
		return nil, err
	}
	return &state{snap: snap, number: number + 1, changed: map[entity.Key]*life{}}, nil
}

// find returns a live entity.
func (s *state) find(ctx context.Context, key entity.Key) (life, error) {
	if l, ok := s.changed[key]; ok {
		if l == nil {
			return life{}, fmt.Errorf("entity %s does not exist", key)
		}
		return *l, nil
	}
	e, err := s.snap.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return life{}, fmt.Errorf("entity %s does not exist", key)
	}
	if err != nil {
		return life{}, &brokenError{err}
	}
	return life{common.Address(e.Owner), e.Expiration}, nil
}

// brokenError is an error of the store, not of a transaction.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// events are the events of operations, in the processor's form and in the
// contract's.
type events struct{ processor, registry []*types.Log }

func (e *events) add(topic entity.Hash, kind entity.Kind, key entity.Key, l life, owners []common.Address, numbers ...uint64) {
	first := &types.Log{Address: processor, Topics: []common.Hash{common.Hash(topic), common.Hash(key)}, Data: []byte{}}
	for _, owner := range owners {
		first.Topics = append(first.Topics, common.BytesToHash(owner[:]))
	}
	for _, n := range numbers {
		first.Data = append(first.Data, word(n)...)
	}
	e.processor = append(e.processor, first)
	e.registry = append(e.registry, &types.Log{
		Address: registry,
		Topics:  []common.Hash{topicOperation, common.Hash(key), {31: byte(slices.Index(kinds[:], kind))}, common.BytesToHash(l.owner[:])},
		Data:    append(word(min(l.expires, 1<<32-1)), make([]byte, 32)...),
	})
}

func word(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 24), n) }

// expire removes the entities that expire at the block.
func (s *state) expire(ctx context.Context) (e events, err error) {
	q, err := query.Parse(fmt.Sprintf("$expiration <= %d", s.number))
	if err != nil {
		return e, err
	}
	for found, err := range s.snap.Query(ctx, q, nil) {
		if err != nil {
			return e, err
		}
		l := life{common.Address(found.Owner), found.Expiration}
		s.changed[found.Key] = nil
		e.add(chain.TopicExpired, entity.Expire, found.Key, l, []common.Address{l.owner})
	}
	return e, nil
}

// change is an operation in either form.
type change struct {
	kind  entity.Kind
	key   entity.Key
	owner common.Address // ChangeOwner
	btl   uint64         // Create and Update: from this block on; ExtendBTL: added to the old expiration
}

// atomic runs f, and undoes its changes of the state if it fails.
func (s *state) atomic(f func() error) error {
	before := maps.Clone(s.changed)
	err := f()
	if err != nil {
		s.changed = before
	}
	return err
}

// do executes one operation of an account.
func (s *state) do(ctx context.Context, from common.Address, c change, e *events) error {
	gives := c.kind == entity.Create || c.kind == entity.Update || c.kind == entity.ExtendBTL
	if gives && c.btl == 0 {
		return errors.New("a lifetime of no blocks")
	}
	if c.kind == entity.Create {
		l := life{from, entity.AddBlocks(s.number, c.btl)}
		s.changed[c.key] = &l
		e.add(chain.TopicCreated, c.kind, c.key, l, []common.Address{from}, l.expires, 0)
		return nil
	}
	old, err := s.find(ctx, c.key)
	if err != nil {
		return err
	}
	if old.owner != from && c.kind != entity.ExtendBTL { // anybody may let an entity live longer
		return fmt.Errorf("entity %s is owned by %s, not by %s", c.key, old.owner, from)
	}
	now := old
	switch c.kind {
	case entity.Delete:
		s.changed[c.key] = nil
		e.add(chain.TopicDeleted, c.kind, c.key, old, []common.Address{old.owner})
		return nil
	case entity.ChangeOwner:
		now.owner = c.owner
		e.add(chain.TopicOwnerChanged, c.kind, c.key, now, []common.Address{old.owner, now.owner})
	case entity.Update:
		now.expires = entity.AddBlocks(s.number, c.btl)
		e.add(chain.TopicUpdated, c.kind, c.key, now, []common.Address{now.owner}, old.expires, now.expires, 0)
	case entity.ExtendBTL:
		now.expires = entity.AddBlocks(old.expires, c.btl)
		e.add(chain.TopicExtended, c.kind, c.key, now, []common.Address{now.owner}, old.expires, now.expires, 0)
	}
	s.changed[c.key] = &now
	return nil
}

// keyOf computes the key that the chain gives to a new entity.
func keyOf(tx common.Hash, payload []byte, i int) entity.Key {
	return entity.Key(crypto.Keccak256(tx[:], payload, word(uint64(i))))
}

// operations executes the operations in a transaction to the processor.
func (s *state) operations(ctx context.Context, tx common.Hash, from common.Address, input []byte) (e events, err error) {
	ops, err := chain.DecodeOperations(input)
	if err != nil {
		return e, err
	}
	if err := checkOperations(ops); err != nil {
		return e, err
	}
	var list []change
	for i, c := range ops.Creates {
		list = append(list, change{kind: entity.Create, key: keyOf(tx, c.Payload, i), btl: c.BTL})
	}
	for _, key := range ops.Deletes {
		list = append(list, change{kind: entity.Delete, key: key})
	}
	for _, u := range ops.Updates {
		list = append(list, change{kind: entity.Update, key: u.Key, btl: u.BTL})
	}
	for _, x := range ops.Extensions {
		list = append(list, change{kind: entity.ExtendBTL, key: x.Key, btl: x.Blocks})
	}
	for _, o := range ops.OwnerChanges {
		list = append(list, change{kind: entity.ChangeOwner, key: o.Key, owner: common.Address(o.Owner)})
	}
	err = s.atomic(func() error {
		for _, c := range list {
			if err := s.do(ctx, from, c, &e); err != nil {
				return err
			}
		}
		return s.acceptable(input, e.processor)
	})
	return e, err
}

// acceptable checks whether Varve will accept operations, by decoding them as
// Varve does.
func (s *state) acceptable(input []byte, logs []*types.Log) error {
	tx := types.NewTx(&types.LegacyTx{To: &processor, Data: input})
	receipt := &types.Receipt{Status: types.ReceiptStatusSuccessful, TxHash: tx.Hash(), Logs: logs}
	b, err := decode(s.number, []transaction{{Transaction: tx}}, []*types.Receipt{receipt})
	if err != nil {
		return err
	}
	return b.Validate()
}

// decode returns the operations of a block as a follower of the chain reads
// them.
func decode(number uint64, txs []transaction, receipts []*types.Receipt) (entity.Block, error) {
	b, list := chain.Block{Number: chain.Quantity(number)}, make([]chain.Receipt, len(receipts))
	for i, r := range receipts {
		tx := txs[i]
		b.Transactions = append(b.Transactions, chain.Transaction{
			Hash: entity.Hash(r.TxHash), From: chain.Address(tx.from), To: (*chain.Address)(tx.To()), Input: tx.Data(),
		})
		list[i] = chain.Receipt{TransactionHash: entity.Hash(r.TxHash), Status: chain.Quantity(r.Status)}
		for _, l := range r.Logs {
			list[i].Logs = append(list[i].Logs, chain.Log{Address: chain.Address(l.Address), Data: l.Data, Topics: topics(l)})
		}
	}
	return chain.Decode(&b, list)
}
