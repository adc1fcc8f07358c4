// Package chaintest simulates a chain for tests: it grows by random blocks,
// reorganises, and answers like an execution client.
package chaintest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store/entity"
)

// Chain is a simulated chain. Its methods may be called from several
// goroutines.
type Chain struct {
	ID uint64

	mu     sync.Mutex
	rng    *rand.Rand
	blocks []made
	// For given blocks: how many block numbers lie between the first block and
	// them, how many of the last ones are hidden, and the number of the last
	// forgotten one.
	skipped   uint64
	hidden    int
	forgotten int
}

// made is a block of the chain, and the block that a follower must make of it.
type made struct {
	block    chain.Block
	receipts []chain.Receipt
	want     entity.Block
	live     map[entity.Key]life // after the block; not modified once the block is made
}

// life is the chain's state of a live entity.
type life struct {
	owner   entity.Address
	expires uint64
}

// New returns a chain with its first block. The same seed and calls make the
// same chain.
func New(id, seed uint64) *Chain {
	c := &Chain{ID: id, rng: rand.New(rand.NewPCG(seed, id))}
	c.add(0)
	return c
}

// Grow adds random blocks.
func (c *Chain) Grow(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.add(6)
	}
}

// Reorganise replaces the last depth blocks by n others.
func (c *Chain) Reorganise(depth, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks = slices.Clone(c.blocks[:max(1, len(c.blocks)-depth)])
	for range n {
		c.add(6)
	}
}

// Last returns the number of the last block.
func (c *Chain) Last() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last()
}

func (c *Chain) last() uint64 { return c.skipped + uint64(len(c.blocks)-c.hidden) - 1 }

// at returns a visible block, or nil.
func (c *Chain) at(n uint64) *made {
	if n == 0 {
		return &c.blocks[0]
	}
	if n <= c.skipped+uint64(c.forgotten) || n > c.last() {
		return nil
	}
	return &c.blocks[n-c.skipped]
}

// Genesis returns the hash of block 0.
func (c *Chain) Genesis() entity.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks[0].block.Hash
}

// Blocks returns the blocks that a follower must apply.
func (c *Chain) Blocks() []entity.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]entity.Block, len(c.blocks))
	for i := range c.blocks {
		list[i] = c.blocks[i].want
	}
	return list
}

// Live returns the number of entities after the last block.
func (c *Chain) Live() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.blocks[len(c.blocks)-1].live)
}

// add makes the next block, with fewer than transactions transactions.
func (c *Chain) add(transactions int) {
	d := draft{rng: c.rng, live: map[entity.Key]life{}}
	var parent entity.Hash
	if len(c.blocks) > 0 {
		before := c.blocks[len(c.blocks)-1]
		parent = before.block.Hash
		maps.Copy(d.live, before.live)
	}
	d.begin(uint64(len(c.blocks)), parent)
	gone := d.expired()
	if transactions > 0 && c.rng.IntN(8) > 0 { // a block without transactions has no such log
		d.addTransaction(gone)
		for range c.rng.IntN(transactions) {
			d.transaction()
		}
	}
	c.blocks = append(c.blocks, made{d.block, d.receipts, d.want, d.live})
}

// draft is a block under construction.
type draft struct {
	rng      *rand.Rand
	block    chain.Block
	receipts []chain.Receipt
	want     entity.Block
	live     map[entity.Key]life
}

func (d *draft) random() (h [32]byte) {
	for i := 0; i < len(h); i += 8 {
		binary.BigEndian.PutUint64(h[i:], d.rng.Uint64())
	}
	return h
}

// send adds a transaction and its receipt.
func (d *draft) send(from entity.Address, to *chain.Address, input []byte, status chain.Quantity, logs []chain.Log) {
	tx := chain.Transaction{Hash: d.random(), From: chain.Address(from), To: to, Input: input}
	d.block.Transactions = append(d.block.Transactions, tx)
	d.receipts = append(d.receipts, chain.Receipt{BlockHash: d.block.Hash, TransactionHash: tx.Hash, Status: status, Logs: logs})
}

// expired returns the Expire operations of expired entities, and removes the
// entities.
func (d *draft) expired() (ops []entity.Op) {
	for _, key := range d.keys() {
		if d.live[key].expires <= d.want.Number {
			delete(d.live, key)
			ops = append(ops, entity.Op{Kind: entity.Expire, Key: key})
		}
	}
	return ops
}

// keys returns the live entities, sorted.
func (d *draft) keys() []entity.Key {
	return slices.SortedFunc(maps.Keys(d.live), func(a, b entity.Key) int { return slices.Compare(a[:], b[:]) })
}

func logOf(kind entity.Hash, key entity.Key, owner entity.Address, data ...uint64) chain.Log {
	l := chain.Log{Address: chain.Processor, Topics: []entity.Hash{kind, entity.Hash(key), word(owner[:])}}
	for _, n := range data {
		w := word(binary.BigEndian.AppendUint64(nil, n))
		l.Data = append(l.Data, w[:]...)
	}
	return l
}

// word is a value of up to 32 bytes, at the right.
func word(b []byte) (w [32]byte) {
	copy(w[len(w)-len(b):], b)
	return w
}

// transaction adds a transaction of a random kind: with operations, failed, to
// another address, or one that creates a contract whose logs look like the
// Processor's.
func (d *draft) transaction() {
	from := entity.Address{0: 0xac, 19: byte(d.rng.IntN(4))}
	switch d.rng.IntN(12) {
	case 0:
		d.send(from, &chain.Processor, []byte("not Brotli"), 0, nil)
	case 1:
		d.send(from, &chain.Address{1}, []byte("else"), 1, nil)
	case 2:
		foreign := logOf(chain.TopicCreated, entity.Key(d.random()), from, 1, 2)
		foreign.Address = chain.Address{2}
		d.send(from, nil, []byte("contract"), 1, []chain.Log{foreign})
	default:
		d.operations(from)
	}
}

// operations adds a transaction with operations of an account, in the order of
// their execution.
func (d *draft) operations(from entity.Address) {
	var list []entity.Op
	for range d.rng.IntN(4) {
		list = append(list, d.content(entity.Create, entity.Key(d.random()), from))
	}
	for _, key := range d.someKeys(1, from) {
		list = append(list, entity.Op{Kind: entity.Delete, Key: key})
		delete(d.live, key)
	}
	for _, key := range d.someKeys(3, from) {
		list = append(list, d.content(entity.Update, key, from))
	}
	for _, key := range d.someKeys(2, entity.Address{}) {
		l := d.live[key]
		l.expires += uint64(1 + d.rng.IntN(30))
		list = append(list, entity.Op{Kind: entity.ExtendBTL, Key: key, BTL: l.expires - d.want.Number})
		d.live[key] = l
	}
	for _, key := range d.someKeys(1, from) {
		l := d.live[key]
		l.owner = entity.Address{0: 0xac, 19: byte(d.rng.IntN(4))}
		list = append(list, entity.Op{Kind: entity.ChangeOwner, Key: key, Owner: l.owner})
		d.live[key] = l
	}
	if err := d.give(list); err != nil {
		panic(err) // it writes into memory
	}
}

// someKeys returns up to most of an account's entities, or of all accounts', in
// random order.
func (d *draft) someKeys(most int, owner entity.Address) []entity.Key {
	list := slices.DeleteFunc(d.keys(), func(key entity.Key) bool {
		return owner != (entity.Address{}) && d.live[key].owner != owner
	})
	d.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(d.rng.IntN(most+1), len(list))]
}

// content returns an operation that creates or updates an entity, and applies
// it to the state.
func (d *draft) content(kind entity.Kind, key entity.Key, from entity.Address) entity.Op {
	op := entity.Op{
		Kind: kind, Key: key, Owner: from, BTL: uint64(1 + d.rng.IntN(60)), ContentType: "text/plain",
		Content:           fmt.Append(nil, "payload ", d.rng.Uint64()),
		StringAttributes:  map[string]string{"type": fmt.Sprint("t", d.rng.IntN(5))},
		NumericAttributes: map[string]uint64{"n": d.rng.Uint64() >> d.rng.IntN(64)},
	}
	if d.rng.IntN(4) == 0 {
		op.StringAttributes["größe"], op.NumericAttributes["zero"] = "", 0
	}
	d.live[key] = life{from, d.want.Number + op.BTL}
	return op
}
