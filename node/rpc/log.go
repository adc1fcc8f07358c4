package rpc

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// topic is an indexed word of a log.
type topic = entity.Hash

// The operation types of the contract's one event.
const (
	opCreated      = 1
	opUpdated      = 2
	opExtended     = 3
	opOwnerChanged = 4
	opDeleted      = 5
	opExpired      = 6
)

// Log is an event of a block. In logs that are made from a block's changes
// TxHash is zero, and so is TxIndex unless the event is a creation, because a
// store keeps neither.
type Log struct {
	Address chain.Address
	Topics  []entity.Hash
	Data    []byte
	TxHash  entity.Hash
	TxIndex uint64
	Index   uint64 // in the block
}

// logWriter makes the logs of a block.
type logWriter struct{ logs []*Log }

// logsOf returns the logs of a block: expirations before operations, creations
// in their order before other changes in the order of keys.
func logsOf(set *store.BlockChanges) []*Log {
	var w logWriter
	for _, e := range set.Expired {
		w.add(e, chain.TopicExpired, opExpired, e.Owner)
	}
	changed := slices.Clone(set.Changed)
	slices.SortStableFunc(changed, func(a, b entity.Change) int { return cmp.Compare(rank(a), rank(b)) })
	for i := range changed {
		w.change(&changed[i])
	}
	return w.logs
}

// rank puts creations first, in their order.
func rank(c entity.Change) uint64 {
	if slices.Contains(c.Kinds(), entity.Create) {
		return c.New.Sequence
	}
	return math.MaxUint64
}

// change adds what happened to an entity.
func (w *logWriter) change(c *entity.Change) {
	for _, kind := range c.Kinds() {
		switch before, after := c.Old, c.New; kind {
		case entity.Delete:
			w.add(before, chain.TopicDeleted, opDeleted, before.Owner)
		case entity.Create:
			w.add(after, chain.TopicCreated, opCreated, after.Owner, after.Expiration, 0).TxIndex = after.TxIndex()
		case entity.Update:
			w.add(after, chain.TopicUpdated, opUpdated, after.Owner, before.Expiration, after.Expiration, 0)
		case entity.ExtendBTL:
			w.add(after, chain.TopicExtended, opExtended, after.Owner, before.Expiration, after.Expiration, 0)
		case entity.ChangeOwner:
			w.ownerChanged(before, after)
		}
	}
}

// add adds an event in both of its forms and returns the first.
func (w *logWriter) add(e *entity.Entity, event topic, op byte, owner entity.Address, numbers ...uint64) *Log {
	l := &Log{Address: chain.Processor, Topics: []topic{event, topic(e.Key), addressTopic(owner)}, Index: uint64(len(w.logs))}
	for _, n := range numbers {
		l.Data = appendWord(l.Data, n)
	}
	w.logs = append(w.logs, l)
	w.operation(e, op, owner)
	return l
}

func (w *logWriter) ownerChanged(before, after *entity.Entity) {
	w.logs = append(w.logs, &Log{
		Address: chain.Processor, Index: uint64(len(w.logs)),
		Topics: []topic{chain.TopicOwnerChanged, topic(after.Key), addressTopic(before.Owner), addressTopic(after.Owner)},
	})
	w.operation(after, opOwnerChanged, after.Owner)
}

// operation adds the contract's form. The entity's hash is not kept, and zero.
func (w *logWriter) operation(e *entity.Entity, op byte, owner entity.Address) {
	l := &Log{Address: chain.Registry, Topics: []topic{chain.TopicOperation, topic(e.Key), {31: op}, addressTopic(owner)}, Index: uint64(len(w.logs))}
	l.Data = append(appendWord(nil, min(e.Expiration, math.MaxUint32)), make([]byte, 32)...)
	w.logs = append(w.logs, l)
}

func addressTopic(a entity.Address) (t topic) {
	copy(t[12:], a[:])
	return t
}

func appendWord(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, make([]byte, 24)...), n)
}

// blockHash returns the hash of a block. If the store was not given one, it
// returns a hash that differs where the blocks differ, by their number or by
// the history up to them.
func blockHash(head store.BlockHeader) topic {
	if head.Hash != (entity.Hash{}) {
		return head.Hash
	}
	return sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte("varve block "), head.Number), head.Digest[:]...))
}

// blockTime returns when a block was made in seconds since 1970, if that is known, and else
// when it was first seen here.
func blockTime(head store.BlockHeader, seen time.Time) uint64 {
	if head.Time != 0 {
		return head.Time
	}
	return uint64(max(seen.Unix(), 0))
}

// appendLog adds a log of a block as JSON.
func appendLog(b []byte, head store.BlockHeader, l *Log, removed bool) []byte {
	hash := blockHash(head)
	b = append(jsonuint.AppendHex(append(b, `{"address":"`...), l.Address[:]), `","topics":[`...)
	for i := range l.Topics {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonuint.AppendHex(append(b, '"'), l.Topics[i][:]), '"')
	}
	b = append(jsonuint.AppendHex(append(b, `],"data":"`...), l.Data), '"')
	b = appendQuantity(append(b, `,"blockNumber":`...), head.Number)
	if head.Time != 0 {
		b = appendQuantity(append(b, `,"blockTimestamp":`...), head.Time)
	}
	b = append(jsonuint.AppendHex(append(b, `,"blockHash":"`...), hash[:]), '"')
	b = append(jsonuint.AppendHex(append(b, `,"transactionHash":"`...), l.TxHash[:]), '"')
	b = appendQuantity(append(b, `,"transactionIndex":`...), l.TxIndex)
	b = appendQuantity(append(b, `,"logIndex":`...), l.Index)
	if removed {
		return append(b, `,"removed":true}`...)
	}
	return append(b, `,"removed":false}`...)
}
