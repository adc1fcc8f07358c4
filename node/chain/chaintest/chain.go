// Package chaintest is the other side of the network for tests: a chain that grows by
// random blocks, reorganises, and answers as an execution client does.
package chaintest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"golang.org/x/crypto/sha3"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store/entity"
)

// Chain is a chain. Its methods may be called from several goroutines.
type Chain struct {
	ID uint64

	mu     sync.Mutex
	rng    *rand.Rand
	blocks []made
	// Blocks that are given: how many numbers there are between the first and them, how
	// many of the last nobody sees yet, and the last of those that were forgotten.
	skipped   uint64
	hidden    int
	forgotten int

	limit *Limit
	fault func(n int) Fault
	asked int
	seen  map[entity.Hash]map[entity.Key]Life // after each block that ever was
}

// made is a block as the chain has it, and what a follower must make of it.
type made struct {
	block    chain.Block
	receipts []chain.Receipt
	want     entity.Block
	live     map[entity.Key]Life // after it; not changed once the block is made
}

// Life is what the chain knows of a live entity.
type Life struct {
	Owner    entity.Address
	Expires  uint64
	Modified uint64
	Payload  string
}

// New returns a chain that has its first block. The same seed and calls make the same
// chain.
func New(id, seed uint64) *Chain {
	c := &Chain{ID: id, rng: rand.New(rand.NewPCG(seed, id)), seen: map[entity.Hash]map[entity.Key]Life{}}
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

// Spoil makes the input of a transaction that succeeded malformed, in a block from a
// number on, and returns which.
func (c *Chain) Spoil(from uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, m := range c.blocks[from:] {
		for i, tx := range m.block.Transactions {
			if tx.To != nil && *tx.To == chain.Processor && m.receipts[i].Status == 1 {
				m.block.Transactions[i].Input = chain.Data("not Brotli")
				return from + uint64(n)
			}
		}
	}
	panic("no block from there on has operations")
}

// Last returns the number of the last block.
func (c *Chain) Last() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last()
}

func (c *Chain) last() uint64 { return c.skipped + uint64(len(c.blocks)-c.hidden) - 1 }

// at returns a block that can be seen, or nil.
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

// Live returns the entities after a block, whether it still is a part of the chain or
// not, and false when it never was.
func (c *Chain) Live(block entity.Hash) (map[entity.Key]Life, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live, ok := c.seen[block]
	return live, ok
}

// add makes the next block, with less than transactions in it.
func (c *Chain) add(transactions int) {
	d := draft{rng: c.rng, live: map[entity.Key]Life{}}
	var parent entity.Hash
	if len(c.blocks) > 0 {
		before := c.blocks[len(c.blocks)-1]
		parent = before.block.Hash
		maps.Copy(d.live, before.live)
	}
	d.begin(uint64(len(c.blocks)), parent)
	if transactions > 0 && c.rng.IntN(8) > 0 {
		d.housekeeping()
		for range c.rng.IntN(transactions) {
			d.transaction()
		}
	} else {
		d.expire(nil) // nothing says so, as in a block without transactions
	}
	c.blocks = append(c.blocks, made{d.block, d.receipts, d.want, d.live})
	c.seen[d.want.Hash] = d.live
}

// draft is a block that is being made.
type draft struct {
	rng      *rand.Rand
	block    chain.Block
	receipts []chain.Receipt
	want     entity.Block
	live     map[entity.Key]Life
	rest     []entity.Op // that were given and are still to be told
}

func (d *draft) random() (h [32]byte) {
	for i := 0; i < len(h); i += 8 {
		binary.BigEndian.PutUint64(h[i:], d.rng.Uint64())
	}
	return h
}

// send adds a transaction and its receipt.
func (d *draft) send(tx chain.Transaction, status chain.Quantity, logs []chain.Log) {
	d.block.Transactions = append(d.block.Transactions, tx)
	d.receipts = append(d.receipts, chain.Receipt{BlockHash: d.block.Hash, TransactionHash: tx.Hash, Status: status, Logs: logs})
}

// housekeeping is the first transaction, whose receipt tells what has run out.
func (d *draft) housekeeping() {
	var logs []chain.Log
	d.expire(&logs)
	d.send(chain.Transaction{Hash: d.random(), To: &chain.Address{0: 0x42}, Input: chain.Data{1}}, 1, logs)
}

func (d *draft) expire(logs *[]chain.Log) {
	for _, key := range d.keys() {
		life := d.live[key]
		if life.Expires > d.want.Number {
			continue
		}
		delete(d.live, key)
		if logs == nil {
			continue
		}
		l := logOf(chain.TopicExpired, key, life.Owner)
		if d.rng.IntN(2) == 0 { // as some versions of the chain have it
			l.Topics, l.Data = l.Topics[:1], key[:]
		}
		*logs = append(*logs, l)
		d.want.Ops = append(d.want.Ops, entity.Op{Kind: entity.Expire, Key: key, OpIndex: uint32(len(*logs) - 1)})
	}
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

// transaction adds one of every sort: with operations, failed, to somebody else, or one
// that makes a contract whose logs look like the Processor's.
func (d *draft) transaction() {
	hash, from := entity.Hash(d.random()), entity.Address{0: 0xac, 19: byte(d.rng.IntN(4))}
	switch d.rng.IntN(12) {
	case 0:
		d.send(chain.Transaction{Hash: hash, From: chain.Address(from), To: &chain.Processor, Input: chain.Data("not Brotli")}, 0, nil)
	case 1:
		d.send(chain.Transaction{Hash: hash, From: chain.Address(from), To: &chain.Address{1}, Input: chain.Data("else")}, 1, nil)
	case 2:
		foreign := logOf(chain.TopicCreated, entity.Key(d.random()), from, 1, 2)
		foreign.Address = chain.Address{2}
		d.send(chain.Transaction{Hash: hash, From: chain.Address(from), Input: chain.Data("contract")}, 1, []chain.Log{foreign})
	default:
		d.operations(hash, from)
	}
}

// operations adds a transaction with operations, in the order of their execution.
func (d *draft) operations(hash entity.Hash, from entity.Address) {
	var ops chain.Operations
	var logs []chain.Log
	tx := uint32(len(d.block.Transactions))
	now := d.want.Number
	do := func(i int, op entity.Op) {
		op.TxIndex, op.OpIndex = tx, uint32(i)
		d.want.Ops = append(d.want.Ops, op)
	}
	for i := range d.rng.IntN(4) {
		c := d.content()
		key := keyOf(hash, c.Payload, i)
		ops.Creates = append(ops.Creates, c)
		logs = append(logs, logOf(chain.TopicCreated, key, from, now+c.BTL, 0))
		do(i, asOp(entity.Create, key, from, c))
		d.live[key] = Life{from, now + c.BTL, now, string(c.Payload)}
	}
	own := d.owned(from)
	for i := range min(d.rng.IntN(2), len(own)) {
		key := own[i]
		ops.Deletes = append(ops.Deletes, key)
		logs = append(logs, logOf(chain.TopicDeleted, key, from))
		do(i, entity.Op{Kind: entity.Delete, Key: key})
		delete(d.live, key)
	}
	own = d.owned(from)
	for i := range min(d.rng.IntN(4), len(own)) {
		key, c := own[i], d.content()
		ops.Updates = append(ops.Updates, chain.Update{Key: key, Create: c})
		logs = append(logs, logOf(chain.TopicUpdated, key, from, d.live[key].Expires, now+c.BTL, 0))
		do(i, asOp(entity.Update, key, from, c))
		d.live[key] = Life{from, now + c.BTL, now, string(c.Payload)}
	}
	others := d.keys()
	d.rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for i := range min(d.rng.IntN(3), len(others)) {
		key, more := others[i], uint64(1+d.rng.IntN(30))
		life := d.live[key]
		ops.Extensions = append(ops.Extensions, chain.Extension{Key: key, Blocks: more})
		logs = append(logs, logOf(chain.TopicExtended, key, life.Owner, life.Expires, life.Expires+more, 0))
		life.Expires, life.Modified = life.Expires+more, now
		do(i, entity.Op{Kind: entity.ExtendBTL, Key: key, BTL: life.Expires - now})
		d.live[key] = life
	}
	own = d.owned(from)
	for i := range min(d.rng.IntN(2), len(own)) {
		key, to := own[i], entity.Address{0: 0xac, 19: byte(d.rng.IntN(4))}
		ops.OwnerChanges = append(ops.OwnerChanges, chain.OwnerChange{Key: key, Owner: to})
		l := logOf(chain.TopicOwnerChanged, key, from)
		l.Topics = append(l.Topics, word(to[:]))
		logs = append(logs, l)
		do(i, entity.Op{Kind: entity.ChangeOwner, Key: key, Owner: to})
		life := d.live[key]
		life.Owner, life.Modified = to, now
		d.live[key] = life
	}
	input, err := ops.Encode()
	if err != nil {
		panic(err) // it writes into memory
	}
	d.send(chain.Transaction{Hash: hash, From: chain.Address(from), To: &chain.Processor, Input: input}, 1, logs)
}

// owned returns some of an account's entities, in random order.
func (d *draft) owned(by entity.Address) (list []entity.Key) {
	for _, key := range d.keys() {
		if d.live[key].Owner == by {
			list = append(list, key)
		}
	}
	d.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (d *draft) content() chain.Create {
	c := chain.Create{
		BTL: uint64(1 + d.rng.IntN(60)), ContentType: "text/plain",
		Payload: []byte(fmt.Sprint("payload ", d.rng.Uint64())),
		Strings: map[string]string{"type": fmt.Sprint("t", d.rng.IntN(5))},
		Numbers: map[string]uint64{"n": d.rng.Uint64() >> d.rng.IntN(64)},
	}
	if d.rng.IntN(4) == 0 {
		c.Strings["größe"], c.Numbers["zero"] = "", 0
	}
	return c
}

func asOp(kind entity.Kind, key entity.Key, from entity.Address, c chain.Create) entity.Op {
	return entity.Op{
		Kind: kind, Key: key, BTL: c.BTL, Owner: from, ContentType: c.ContentType, Content: c.Payload,
		StringAttributes: c.Strings, NumericAttributes: c.Numbers,
	}
}

// keyOf is how the chain names a new entity.
func keyOf(tx entity.Hash, payload []byte, i int) (key entity.Key) {
	index := word(binary.BigEndian.AppendUint64(nil, uint64(i)))
	hash := sha3.NewLegacyKeccak256()
	hash.Write(tx[:])
	hash.Write(payload)
	hash.Write(index[:])
	hash.Sum(key[:0])
	return key
}
