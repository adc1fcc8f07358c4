// Package chain follows an Arkiv chain: it asks an execution client for blocks, reads
// the operations in them and applies them to a store. Where the chain reorganises it
// rewinds the store to the last block that both have.
//
//	client := &chain.Client{URL: "http://localhost:8545"}
//	f := chain.Follower{Client: client, Store: ents}
//	err := f.Run(ctx)
package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/crypto/sha3"

	"github.com/varvedb/varve/store/entity"
)

// Processor is the account that receives transactions with operations, and that
// emits their logs.
var Processor = Address{15: 'a', 16: 'r', 17: 'k', 18: 'i', 19: 'v'}

// Registry is the contract that later networks have instead of the Processor. A
// Follower does not read its transactions.
var Registry = Address{0: 0x44, 19: 0x44}

// The first topics of the Processor's logs. Keys and addresses are indexed.
var (
	TopicCreated      = topic("ArkivEntityCreated(uint256,address,uint256,uint256)")
	TopicUpdated      = topic("ArkivEntityUpdated(uint256,address,uint256,uint256,uint256)")
	TopicExpired      = topic("ArkivEntityExpired(uint256,address)")
	TopicDeleted      = topic("ArkivEntityDeleted(uint256,address)")
	TopicExtended     = topic("ArkivEntityBTLExtended(uint256,address,uint256,uint256,uint256)")
	TopicOwnerChanged = topic("ArkivEntityOwnerChanged(uint256,address,address)")
)

// TopicOperation is the first topic of the Registry's only event.
var TopicOperation = topic("EntityOperation(bytes32,uint8,address,uint32,bytes32)")

func topic(signature string) (h entity.Hash) {
	hash := sha3.NewLegacyKeccak256()
	hash.Write([]byte(signature))
	hash.Sum(h[:0])
	return h
}

// ErrReceipts: the receipts of a block do not belong to its transactions, or
// their logs do not describe the operations.
var ErrReceipts = errors.New("receipts do not fit the block")

// word is the size of a value in a log's data.
const word = 32

// Decode returns the entity operations of a block. It fails with ErrReceipts or
// with an error of DecodeOperations, and names the transaction. The BTL of an
// extension is the expiration in its log minus the block.
func Decode(b *Block, receipts []Receipt) (entity.Block, error) {
	out := entity.Block{Number: uint64(b.Number), Hash: b.Hash, Time: uint64(b.Timestamp)}
	if len(receipts) != len(b.Transactions) {
		return out, fmt.Errorf("block %d: %w: %d of %d transactions", b.Number, ErrReceipts, len(receipts), len(b.Transactions))
	}
	for i := range b.Transactions {
		tx, r := &b.Transactions[i], &receipts[i]
		if r.BlockHash != b.Hash || r.TransactionHash != tx.Hash {
			return out, fmt.Errorf("block %d: %w: receipt %d is of another block or transaction", b.Number, ErrReceipts, i)
		}
		d := decoder{block: &out, tx: uint32(i), from: entity.Address(tx.From), logs: r.Logs}
		var err error
		if i == 0 {
			err = d.expirations()
		}
		if err == nil && r.Status == 1 && len(tx.Input) > 0 && tx.To != nil && *tx.To == Processor {
			err = d.transaction(tx.Input)
		}
		if err != nil {
			return out, fmt.Errorf("block %d, transaction %d: %w", b.Number, i, err)
		}
	}
	return out, nil
}

// decoder appends the operations of one transaction to a block.
type decoder struct {
	block *entity.Block
	tx    uint32
	from  entity.Address
	logs  []Log
}

func (d *decoder) add(i int, op entity.Op) {
	op.TxIndex = d.tx
	// The index of a create is a part of its sequence, and is bounded by
	// MaxCreates. For other operations it is only used in errors.
	op.OpIndex = uint32(min(i, math.MaxUint16))
	d.block.Ops = append(d.block.Ops, op)
}

// of returns the logs of one kind.
func (d *decoder) of(kind entity.Hash) (list []Log) {
	for _, l := range d.logs {
		if l.Address == Processor && len(l.Topics) > 0 && l.Topics[0] == kind {
			list = append(list, l)
		}
	}
	return list
}

// key returns the key of a log: its second topic or, if that is not indexed,
// the first word of the data.
func (l *Log) key() (k entity.Key, err error) {
	switch {
	case len(l.Topics) > 1:
		return entity.Key(l.Topics[1]), nil
	case len(l.Data) >= word:
		return entity.Key(l.Data[:word]), nil
	}
	return k, fmt.Errorf("%w: a log without a key", ErrReceipts)
}

func (d *decoder) expirations() error {
	for i, l := range d.of(TopicExpired) {
		key, err := l.key()
		if err != nil {
			return err
		}
		d.add(i, entity.Op{Kind: entity.Expire, Key: key})
	}
	return nil
}

// transaction adds the operations in the order in which the chain executes
// them.
func (d *decoder) transaction(input []byte) error {
	ops, err := DecodeOperations(input)
	if err != nil {
		return err
	}
	if err := d.creates(ops.Creates); err != nil {
		return err
	}
	for i, key := range ops.Deletes {
		d.add(i, entity.Op{Kind: entity.Delete, Key: key})
	}
	for i := range ops.Updates {
		d.add(i, ops.Updates[i].op(entity.Update, ops.Updates[i].Key, d.from))
	}
	if err := d.extensions(ops.Extensions); err != nil {
		return err
	}
	for i, c := range ops.OwnerChanges {
		d.add(i, entity.Op{Kind: entity.ChangeOwner, Key: c.Key, Owner: c.Owner})
	}
	return nil
}

func (c *Create) op(kind entity.Kind, key entity.Key, owner entity.Address) entity.Op {
	return entity.Op{
		Kind: kind, Key: key, BTL: c.BTL, Owner: owner, ContentType: c.ContentType, Content: c.Payload,
		StringAttributes: c.Strings, NumericAttributes: c.Numbers,
	}
}

func (d *decoder) creates(list []Create) error {
	logs := d.of(TopicCreated)
	if len(logs) != len(list) {
		return fmt.Errorf("%w: %d logs of created entities, %d creates", ErrReceipts, len(logs), len(list))
	}
	for i := range list {
		key, err := logs[i].key()
		if err != nil {
			return err
		}
		d.add(i, list[i].op(entity.Create, key, d.from))
	}
	return nil
}

// extensions reads the new expirations from the logs, because the chain decides
// from which block an extension counts.
func (d *decoder) extensions(list []Extension) error {
	logs := d.of(TopicExtended)
	if len(logs) != len(list) {
		return fmt.Errorf("%w: %d logs of extended entities, %d extensions", ErrReceipts, len(logs), len(list))
	}
	for i, e := range list {
		l := &logs[i]
		key, err := l.key()
		if err != nil {
			return err
		}
		if key != e.Key || len(l.Topics) < 2 || len(l.Data) < 2*word {
			return fmt.Errorf("%w: log %d of extended entities is not that of %s", ErrReceipts, i, e.Key)
		}
		until := saturated(l.Data[word : 2*word])
		if until < d.block.Number {
			return fmt.Errorf("%w: %s is extended to block %d", ErrReceipts, e.Key, until)
		}
		d.add(i, entity.Op{Kind: entity.ExtendBTL, Key: e.Key, BTL: until - d.block.Number})
	}
	return nil
}

// saturated reads a word as a number, at most the largest uint64.
func saturated(b []byte) uint64 {
	for _, c := range b[:word-8] {
		if c != 0 {
			return math.MaxUint64
		}
	}
	return binary.BigEndian.Uint64(b[word-8:])
}
