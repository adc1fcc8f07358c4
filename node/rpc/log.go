package rpc

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/varvedb/varve/store"
)

// topic is an indexed word of a log.
type topic [32]byte

func mustTopic(digits string) (t topic) {
	if n, err := hex.Decode(t[:], []byte(digits)); err != nil || n != len(t) {
		panic("rpc: malformed topic " + digits)
	}
	return t
}

// The first topics of logs: Keccak-256 of the event's signature.
var (
	topicCreated      = mustTopic("73dc52f9255c70375a8835a75fca19be3d9f6940536cccf5a7bc414368b389fa") // ArkivEntityCreated(uint256,address,uint256,uint256)
	topicUpdated      = mustTopic("7e0bc9bab49e941b50c40ff21a415b0917df8caa9a3c3e85d6b8cfda94b52ff9") // ArkivEntityUpdated(uint256,address,uint256,uint256,uint256)
	topicExpired      = mustTopic("e3dbbcdb0a31e8bbde82b5756869daff81ae12c21009a8f7fcc8a07e00948a0f") // ArkivEntityExpired(uint256,address)
	topicDeleted      = mustTopic("749d62eff980a5016f4f357bd7eb8b65163f1e25bc400dcfc5e33f0e7910149e") // ArkivEntityDeleted(uint256,address)
	topicExtended     = mustTopic("0a5f98a4e3c7ac5f503e302ccd21b6132f04d51b89c5e02487c89ab3b7c6d60b") // ArkivEntityBTLExtended(uint256,address,uint256,uint256,uint256)
	topicOwnerChanged = mustTopic("7ccdcb525ffa054be1f1902b048545dbf59495a428169a95b032546ad54708c4") // ArkivEntityOwnerChanged(uint256,address,address)
	topicOperation    = mustTopic("59d8fa7d051fb654085299dbc65c5c3c2ee51773cc4673e3be14a742219850b7") // EntityOperation(bytes32,uint8,address,uint32,bytes32)
)

// The addresses that logs come from: the processor's, and that of the contract which
// Arkiv's later networks have in its place.
var (
	processor = store.Address{15: 'a', 16: 'r', 17: 'k', 18: 'i', 19: 'v'}
	registry  = store.Address{0: 0x44, 19: 0x44}
)

// The operation types of the contract's one event.
const (
	opCreated      = 1
	opUpdated      = 2
	opExtended     = 3
	opOwnerChanged = 4
	opDeleted      = 5
	opExpired      = 6
)

// eventLog is a log as far as the store can tell it.
type eventLog struct {
	address store.Address
	topics  []topic
	data    []byte
	tx      uint64 // of a creation; of other events it is not kept
	index   int    // in the block
}

// logWriter makes the logs of a block.
type logWriter struct{ logs []*eventLog }

// logsOf returns the logs of a block: what ran out before what was done, creations in
// their order before the rest in the order of keys.
func logsOf(set *store.BlockChanges) []*eventLog {
	var w logWriter
	for _, e := range set.Expired {
		w.add(e, topicExpired, opExpired, e.Owner)
	}
	changed := slices.Clone(set.Changed)
	slices.SortStableFunc(changed, func(a, b store.EntityChange) int { return cmp.Compare(rank(a), rank(b)) })
	for _, c := range changed {
		w.change(c.Old, c.New)
	}
	return w.logs
}

// rank puts what was created first, in the order of creation.
func rank(c store.EntityChange) uint64 {
	if created(c.Old, c.New) {
		return c.New.Sequence
	}
	return math.MaxUint64
}

func created(before, after *store.Entity) bool {
	return after != nil && (before == nil || before.Sequence != after.Sequence)
}

// change adds what happened to an entity.
func (w *logWriter) change(before, after *store.Entity) {
	if before != nil && (after == nil || created(before, after)) {
		w.add(before, topicDeleted, opDeleted, before.Owner)
	}
	switch {
	case after == nil:
	case created(before, after):
		w.add(after, topicCreated, opCreated, after.Owner, after.Expiration, 0).tx = after.TxIndex()
	default:
		given := before.Owner != after.Owner
		moved := before.Expiration != after.Expiration
		switch {
		case !sameContent(before, after) || !given && !moved:
			w.add(after, topicUpdated, opUpdated, after.Owner, before.Expiration, after.Expiration, 0)
		case moved:
			w.add(after, topicExtended, opExtended, after.Owner, before.Expiration, after.Expiration, 0)
		}
		if given {
			w.ownerChanged(before, after)
		}
	}
}

func sameContent(a, b *store.Entity) bool {
	return a.ContentType == b.ContentType && bytes.Equal(a.Content, b.Content) &&
		maps.Equal(a.StringAttributes, b.StringAttributes) && maps.Equal(a.NumericAttributes, b.NumericAttributes)
}

// add adds an event in both of its forms and returns the first.
func (w *logWriter) add(e *store.Entity, event topic, op byte, owner store.Address, numbers ...uint64) *eventLog {
	l := &eventLog{address: processor, topics: []topic{event, topic(e.Key), addressTopic(owner)}, index: len(w.logs)}
	for _, n := range numbers {
		l.data = appendWord(l.data, n)
	}
	w.logs = append(w.logs, l)
	w.operation(e, op, owner)
	return l
}

func (w *logWriter) ownerChanged(before, after *store.Entity) {
	w.logs = append(w.logs, &eventLog{
		address: processor, index: len(w.logs),
		topics: []topic{topicOwnerChanged, topic(after.Key), addressTopic(before.Owner), addressTopic(after.Owner)},
	})
	w.operation(after, opOwnerChanged, after.Owner)
}

// operation adds the contract's form. The entity's hash is not kept, and zero.
func (w *logWriter) operation(e *store.Entity, op byte, owner store.Address) {
	l := &eventLog{address: registry, topics: []topic{topicOperation, topic(e.Key), {31: op}, addressTopic(owner)}, index: len(w.logs)}
	l.data = append(appendWord(nil, min(e.Expiration, math.MaxUint32)), make([]byte, 32)...)
	w.logs = append(w.logs, l)
}

func addressTopic(a store.Address) (t topic) {
	copy(t[12:], a[:])
	return t
}

func appendWord(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, make([]byte, 24)...), n)
}

// blockHash returns the hash of a block. A store that was not told has none: then it is one
// that differs where the blocks differ, by their number or by the history up to them.
func blockHash(head store.BlockHead) topic {
	if head.Hash != (store.Hash{}) {
		return topic(head.Hash)
	}
	return sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte("varve block "), head.Block), head.Digest[:]...))
}

// blockTime returns when a block was made in seconds since 1970, if that is known, and else
// when it was first seen here.
func blockTime(head store.BlockHead, seen time.Time) uint64 {
	if head.Time != 0 {
		return head.Time
	}
	return uint64(max(seen.Unix(), 0))
}

// appendLog adds a log of a block as JSON. What the store does not keep is zero: hashes of
// transactions, and their indexes but of creations.
func appendLog(b []byte, head store.BlockHead, l *eventLog, removed bool) []byte {
	hash := blockHash(head)
	b = append(appendHex(append(b, `{"address":"`...), l.address[:]), `","topics":[`...)
	for i := range l.topics {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendHex(append(b, '"'), l.topics[i][:]), '"')
	}
	b = append(appendHex(append(b, `],"data":"`...), l.data), '"')
	b = appendQuantity(append(b, `,"blockNumber":`...), head.Block)
	b = append(appendHex(append(b, `,"blockHash":"`...), hash[:]), '"')
	b = append(appendHex(append(b, `,"transactionHash":"`...), make([]byte, 32)), '"')
	b = appendQuantity(append(b, `,"transactionIndex":`...), l.tx)
	b = appendQuantity(append(b, `,"logIndex":`...), uint64(l.index))
	if removed {
		return append(b, `,"removed":true}`...)
	}
	return append(b, `,"removed":false}`...)
}
