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

// happening is a kind of event in both forms: its first topic in the
// processor's form, and its operation type in the contract's.
type happening struct {
	topic topic
	op    byte
}

var (
	entityCreated  = happening{chain.TopicCreated, 1}
	entityUpdated  = happening{chain.TopicUpdated, 2}
	entityExtended = happening{chain.TopicExtended, 3}
	ownerChanged   = happening{chain.TopicOwnerChanged, 4}
	entityDeleted  = happening{chain.TopicDeleted, 5}
	entityExpired  = happening{chain.TopicExpired, 6}
)

// Log is an event of a block. In logs that are made from a block's changes
// TxHash is zero, and TxIndex is set only for creations, because a store keeps
// neither.
type Log struct {
	Address chain.Address
	Topics  []entity.Hash
	Data    []byte
	TxHash  entity.Hash
	TxIndex uint64
	Index   uint64 // in the block
}

// logWriter collects the logs of a block.
type logWriter struct{ logs []*Log }

// logsOf returns the logs of a block: expirations, then creations in their
// order, then other changes by key.
func logsOf(set *store.BlockChanges) []*Log {
	var w logWriter
	for _, e := range set.Expired {
		w.add(e, entityExpired)
	}
	changed := slices.Clone(set.Changed)
	slices.SortStableFunc(changed, func(a, b entity.Change) int { return cmp.Compare(rank(a), rank(b)) })
	for i := range changed {
		w.change(&changed[i])
	}
	return w.logs
}

// rank sorts creations first, in their order.
func rank(c entity.Change) uint64 {
	if slices.Contains(c.Kinds(), entity.Create) {
		return c.New.Sequence
	}
	return math.MaxUint64
}

// change adds the events of a changed entity.
func (w *logWriter) change(c *entity.Change) {
	for _, kind := range c.Kinds() {
		switch before, after := c.Old, c.New; kind {
		case entity.Delete:
			w.add(before, entityDeleted)
		case entity.Create:
			w.add(after, entityCreated, after.Expiration, 0).TxIndex = after.TxIndex()
		case entity.Update:
			w.add(after, entityUpdated, before.Expiration, after.Expiration, 0)
		case entity.ExtendBTL:
			w.add(after, entityExtended, before.Expiration, after.Expiration, 0)
		case entity.ChangeOwner:
			l := w.add(after, ownerChanged)
			l.Topics = slices.Insert(l.Topics, 2, addressTopic(before.Owner))
		}
	}
}

// add adds an event of an entity in both forms and returns the first. In the
// contract's form the entity's hash is zero, because a store does not keep it.
func (w *logWriter) add(e *entity.Entity, h happening, numbers ...uint64) *Log {
	owner, index := addressTopic(e.Owner), uint64(len(w.logs))
	l := &Log{Address: chain.Processor, Topics: []topic{h.topic, topic(e.Key), owner}, Index: index}
	for _, n := range numbers {
		l.Data = appendWord(l.Data, n)
	}
	w.logs = append(w.logs, l, &Log{
		Address: chain.Registry, Topics: []topic{chain.TopicOperation, topic(e.Key), {31: h.op}, owner}, Index: index + 1,
		Data: append(appendWord(nil, min(e.Expiration, math.MaxUint32)), make([]byte, 32)...),
	})
	return l
}

func addressTopic(a entity.Address) (t topic) {
	copy(t[12:], a[:])
	return t
}

func appendWord(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, make([]byte, 24)...), n)
}

// blockHash returns the hash of a block. If the store has none, it derives one
// from the block's number and the history up to it, so that different blocks
// have different hashes.
func blockHash(head store.BlockHeader) topic {
	if head.Hash != (entity.Hash{}) {
		return head.Hash
	}
	return sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte("varve block "), head.Number), head.Digest[:]...))
}

// blockTime returns when a block was made, in seconds since 1970; if that is
// unknown, when it was first seen here.
func blockTime(head store.BlockHeader, seen time.Time) uint64 {
	if head.Time != 0 {
		return head.Time
	}
	return uint64(max(seen.Unix(), 0))
}

// appendLog appends a log as JSON.
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
