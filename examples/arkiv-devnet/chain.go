package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
)

const gasLimit = 1_000_000_000 // of a block

// maxReorganised is how many blocks may be replaced before those behind them are final.
const maxReorganised = 64

// baseFee is that of every block.
var baseFee = big.NewInt(1_000_000_000)

// system is the sender of what the chain itself has to tell. No key is known of it.
var system = common.HexToAddress("0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001")

// account is what the chain knows of one.
type account struct {
	nonce   uint64
	balance *big.Int // not changed, but replaced
}

// transaction is one with its sender.
type transaction struct {
	*types.Transaction
	from common.Address
}

// block is a block with what became of its transactions.
type block struct {
	*types.Block
	txs      []transaction
	receipts []*types.Receipt
	accounts map[common.Address]account // after it; not changed once it is made
}

func (b *block) logs(match func(*types.Log) bool) (list []*types.Log) {
	for _, r := range b.receipts {
		for _, l := range r.Logs {
			if match(l) {
				list = append(list, l)
			}
		}
	}
	return list
}

// step is what happened to the chain: a block came, or went.
type step struct {
	block   *block
	removed bool
}

// Chain is a chain for development. Entities are in Varve, which follows it as any other;
// blocks, transactions and receipts are in memory, and gone when the process ends.
type Chain struct {
	id       uint64
	atOnce   bool // each transaction gets a block at once
	now      func() time.Time
	ents     *store.Entities
	follower *chain.Follower
	signer   types.Signer

	making sync.Mutex // held by who makes blocks
	forks  uint64     // reorganisations so far, so that no block is like one that it replaces

	mu      sync.Mutex
	blocks  []*block // what the follower is told
	visible []*block // what clients are told: what Varve has
	final   int      // the number of the last block that is not replaced any more
	places  map[common.Hash]place
	journal []step
	moved   chan struct{} // closed when the journal grows
	pool    pool
}

// place is where a transaction is.
type place struct {
	block *block
	index int
}

// newChain makes a chain with its first block, which Varve has when it returns.
func newChain(ctx context.Context, ents *store.Entities, id uint64, atOnce bool, funded []common.Address) (*Chain, error) {
	c := &Chain{
		id: id, atOnce: atOnce, now: time.Now, ents: ents, signer: types.LatestSignerForChainID(new(big.Int).SetUint64(id)),
		places: map[common.Hash]place{}, moved: make(chan struct{}), pool: newPool(),
	}
	server := ethrpc.NewServer()
	if err := server.RegisterName("eth", &blocksAPI{c, c.told}); err != nil {
		return nil, err
	}
	c.follower = &chain.Follower{
		Store: ents, Once: true,
		Client: &chain.Client{URL: url, HTTP: &http.Client{Transport: inProcess{server}}, Attempts: 3},
	}
	accounts := map[common.Address]account{}
	for _, a := range funded {
		accounts[a] = account{balance: new(big.Int).Mul(big.NewInt(10_000), big.NewInt(1e18))}
	}
	// No two chains have the same first block, so that a store of an earlier one is refused.
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)
	genesis := c.seal(nil, &draft{accounts: accounts, extra: salt})
	c.making.Lock()
	defer c.making.Unlock()
	return c, c.extend(ctx, genesis, nil)
}

func (c *Chain) told() []*block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks
}

func (c *Chain) seen() []*block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.visible
}

func (c *Chain) head() *block {
	list := c.seen()
	return list[len(list)-1]
}

// draft is a block that is being made.
type draft struct {
	number   uint64
	time     uint64
	extra    []byte
	gas      uint64
	txs      []transaction
	receipts []*types.Receipt
	accounts map[common.Address]account
}

func (d *draft) add(tx transaction, gas uint64, status uint64, price *big.Int, logs []*types.Log) {
	d.gas += gas
	if logs == nil {
		logs = []*types.Log{}
	}
	r := &types.Receipt{
		Type: tx.Type(), Status: status, CumulativeGasUsed: d.gas, GasUsed: gas, Logs: logs,
		TxHash: tx.Hash(), EffectiveGasPrice: price, TransactionIndex: uint(len(d.txs)),
	}
	r.Bloom = types.CreateBloom(r)
	d.txs, d.receipts = append(d.txs, tx), append(d.receipts, r)
}

// told adds a transaction of the chain's own. It is told from others by another's hash.
func (d *draft) told(from, to common.Address, input []byte, of common.Hash, i int, logs []*types.Log) {
	tx := types.NewTx(&types.LegacyTx{
		Nonce: d.number, GasPrice: new(big.Int), To: &to, Value: new(big.Int), Data: input,
		V: new(big.Int), R: of.Big(), S: big.NewInt(int64(i + 1)),
	})
	d.add(transaction{tx, from}, 0, types.ReceiptStatusSuccessful, new(big.Int), logs)
}

// seal makes a block of a draft.
func (c *Chain) seal(parent *block, d *draft) *block {
	header := &types.Header{
		UncleHash: types.EmptyUncleHash, Difficulty: new(big.Int), Number: new(big.Int).SetUint64(d.number), GasLimit: gasLimit,
		GasUsed: d.gas, Time: d.time, Extra: d.extra, BaseFee: baseFee, Root: types.EmptyRootHash,
	}
	if parent != nil {
		header.ParentHash = parent.Hash()
	} else {
		header.Time = uint64(c.now().Unix())
	}
	body := &types.Body{}
	for _, tx := range d.txs {
		body.Transactions = append(body.Transactions, tx.Transaction)
	}
	b := &block{types.NewBlock(header, body, d.receipts, trie.NewStackTrie(nil)), d.txs, d.receipts, d.accounts}
	hash, n := b.Hash(), uint(0)
	for i, r := range b.receipts {
		r.BlockHash, r.BlockNumber = hash, b.Number()
		for _, l := range r.Logs {
			l.BlockHash, l.BlockNumber, l.BlockTimestamp = hash, d.number, b.Time()
			l.TxHash, l.TxIndex, l.Index = r.TxHash, uint(i), n
			n++
		}
	}
	return b
}

// extend adds a block: first Varve gets it, then clients are told. Blocks that it replaces
// are told to be gone.
func (c *Chain) extend(ctx context.Context, b *block, gone []*block) error {
	c.mu.Lock()
	c.blocks = append(c.blocks, b)
	list := c.blocks
	c.mu.Unlock()
	// Once it has begun it ends: clients and Varve are not to be of two minds.
	if err := c.follower.Run(context.WithoutCancel(ctx)); err != nil {
		c.mu.Lock()
		c.blocks = slices.Clip(c.blocks[:len(c.blocks)-1])
		c.mu.Unlock()
		return fmt.Errorf("block %d: %w", b.NumberU64(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.visible = list
	c.final = max(c.final, len(list)-1-maxReorganised)
	for _, old := range slices.Backward(gone) {
		c.journal = append(c.journal, step{old, true})
		for _, tx := range old.txs {
			delete(c.places, tx.Hash())
		}
	}
	c.journal = append(c.journal, step{b, false})
	for i, tx := range b.txs {
		c.places[tx.Hash()] = place{b, i}
	}
	c.pool.settle(b.accounts)
	close(c.moved)
	c.moved = make(chan struct{})
	return nil
}

// Mine makes a block of what waits, which may be nothing.
func (c *Chain) Mine(ctx context.Context) error {
	c.making.Lock()
	defer c.making.Unlock()
	return c.mine(ctx, nil)
}

func (c *Chain) mine(ctx context.Context, gone []*block) error {
	list := c.told()
	parent := list[len(list)-1]
	b, err := c.next(ctx, parent)
	if err != nil {
		return fmt.Errorf("block %d: %w", parent.NumberU64()+1, err)
	}
	return c.extend(ctx, b, gone)
}

// Reorganise replaces the last blocks by as many and one more. Their transactions are
// forgotten, or wait again for a block.
func (c *Chain) Reorganise(ctx context.Context, depth uint64, again bool) error {
	c.making.Lock()
	defer c.making.Unlock()
	c.mu.Lock()
	n := uint64(len(c.blocks))
	if most := n - 1 - uint64(c.final); depth == 0 || depth > most {
		c.mu.Unlock()
		return fmt.Errorf("a depth from 1 to %d, please: what is before is final", most)
	}
	c.forks++
	before := c.blocks
	gone := c.blocks[n-depth:]
	c.blocks = slices.Clip(c.blocks[:n-depth])
	base := c.blocks[len(c.blocks)-1]
	if again {
		for _, b := range gone {
			for _, tx := range b.txs {
				if own, _ := types.Sender(c.signer, tx.Transaction); own == tx.from {
					c.pool.put(tx)
				}
			}
		}
	}
	c.pool.settle(base.accounts)
	c.mu.Unlock()
	for i := range depth + 1 {
		if err := c.mine(ctx, gone); err != nil {
			if i == 0 {
				c.mu.Lock()
				c.blocks = before
				c.mu.Unlock()
			}
			return err
		}
		gone = nil
	}
	return nil
}

// next makes the block after another.
func (c *Chain) next(ctx context.Context, parent *block) (_ *block, err error) {
	s, err := stateAfter(ctx, c.ents, parent.NumberU64())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	d := &draft{number: s.number, time: max(uint64(c.now().Unix()), parent.Time()+1), extra: fmt.Appendf(nil, "varve devnet %d", c.forks), accounts: maps.Clone(parent.accounts)}
	ended, err := s.expire(ctx)
	if err != nil {
		return nil, err
	}
	if logs := slices.Concat(ended.processor, ended.registry); len(logs) > 0 {
		d.told(system, processor, nil, parent.Hash(), 0, logs)
	}
	c.mu.Lock()
	waiting := c.pool.executable(parent.accounts)
	c.mu.Unlock()
	for _, tx := range waiting {
		if d.gas+intrinsicGas(tx.Data()) > gasLimit || len(d.txs) > 1<<14 {
			break
		}
		if err := c.execute(ctx, s, d, tx); err != nil {
			return nil, err
		}
	}
	return c.seal(parent, d), nil
}

// execute adds a transaction to a block. What is wrong with it is in its receipt.
func (c *Chain) execute(ctx context.Context, s *state, d *draft, tx transaction) error {
	gas := intrinsicGas(tx.Data())
	tip, err := tx.EffectiveGasTip(baseFee)
	if err != nil {
		return err // the pool has seen to it
	}
	price := tip.Add(tip, baseFee)
	from := d.accounts[tx.from]
	spent := new(big.Int).Mul(price, new(big.Int).SetUint64(gas))
	d.accounts[tx.from] = account{from.nonce + 1, new(big.Int).Sub(from.balance, spent)}

	told, mirrors, err := s.run(ctx, tx)
	var broken *brokenError
	if errors.As(err, &broken) {
		return err
	}
	if err != nil {
		d.add(tx, gas, types.ReceiptStatusFailed, price, nil)
		return nil
	}
	d.pay(tx.from, *tx.To(), tx.Value())
	d.add(tx, gas, types.ReceiptStatusSuccessful, price, told)
	for i, m := range mirrors {
		if m.input == nil {
			d.told(tx.from, registry, nil, tx.Hash(), i, m.registry)
		} else {
			d.told(tx.from, processor, m.input, tx.Hash(), i, m.processor)
		}
	}
	return nil
}

func (d *draft) pay(from, to common.Address, value *big.Int) {
	if value.Sign() == 0 {
		return
	}
	a := d.accounts[from]
	d.accounts[from] = account{a.nonce, new(big.Int).Sub(a.balance, value)}
	b := d.accounts[to]
	if b.balance == nil {
		b.balance = new(big.Int)
	}
	d.accounts[to] = account{b.nonce, new(big.Int).Add(b.balance, value)}
}

// run carries out what a transaction asks for. A transaction in one of the two forms tells
// in that form alone, as clients expect; in the other one, a mirror after it does.
func (s *state) run(ctx context.Context, tx transaction) (told []*types.Log, mirrors []mirror, err error) {
	switch *tx.To() {
	case processor:
		e, err := s.operations(ctx, tx.Hash(), tx.from, tx.Data())
		return e.processor, []mirror{{events: e}}, err
	case registry:
		mirrors, err := s.call(ctx, tx.Hash(), tx.from, tx.Data())
		for _, m := range mirrors {
			told = append(told, m.registry...)
		}
		return told, mirrors, err
	}
	return nil, nil, nil
}

// intrinsicGas is what a transaction costs, for there is nothing to compute.
func intrinsicGas(data []byte) uint64 {
	gas := uint64(21_000)
	for _, b := range data {
		if b == 0 {
			gas += 4
		} else {
			gas += 16
		}
	}
	return gas
}
