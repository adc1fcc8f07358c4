package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

const gasLimit = 1_000_000_000 // of a block

// maxReorganised is how many blocks may be replaced; older ones are final.
const maxReorganised = 64

// baseFee is the base fee of every block.
var baseFee = big.NewInt(1_000_000_000)

// system is the sender of the chain's own transactions. Its private key is
// unknown.
var system = common.HexToAddress("0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001")

// account is the state of an account.
type account struct {
	nonce   uint64
	balance *big.Int // immutable; replaced when it changes
}

// transaction is a transaction with its sender.
type transaction struct {
	*types.Transaction
	from common.Address
}

// block is a block with its transactions and their receipts.
type block struct {
	*types.Block
	*draft
	logs []*rpc.Log // logs of the receipts, followed by the logs in the other form
}

// Chain is a development chain. Entities are stored in Varve, which receives
// each block as a follower of the chain would read it. Blocks, transactions and
// receipts are only in memory.
type Chain struct {
	id     uint64
	atOnce bool // each transaction gets a block at once
	now    func() time.Time
	ents   *store.Entities
	signer types.Signer

	// mu is also held while Varve applies or rewinds a block, so that clients
	// do not see a block before Varve has it.
	mu     sync.Mutex
	forks  uint64 // reorganisations so far, so that a replacing block differs from the one it replaces
	blocks []*block
	final  int // number of the last block that cannot be replaced any more
	places map[common.Hash]place
	pool   pool
}

// place is the position of a transaction in the chain.
type place struct {
	block *block
	index int
}

// newChain makes a chain with its first block, and applies that to Varve.
func newChain(ctx context.Context, ents *store.Entities, id uint64, atOnce bool, funded []common.Address) (*Chain, error) {
	c := &Chain{
		id: id, atOnce: atOnce, now: time.Now, ents: ents, signer: types.LatestSignerForChainID(new(big.Int).SetUint64(id)),
		places: map[common.Hash]place{}, pool: newPool(),
	}
	accounts := map[common.Address]account{}
	for _, a := range funded {
		accounts[a] = account{balance: new(big.Int).Mul(big.NewInt(10_000), big.NewInt(1e18))}
	}
	// The first block differs between chains, so that a store of an earlier
	// chain is refused.
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)
	genesis := seal(nil, &draft{time: uint64(c.now().Unix()), accounts: accounts, extra: salt})
	if err := ents.SetChain(ctx, store.Chain{ID: id, Genesis: entity.Hash(genesis.Hash())}); err != nil {
		return nil, err
	}
	return c, c.extend(ctx, genesis)
}

// head returns the last block.
func (c *Chain) head() *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last()
}

func (c *Chain) last() *block { return c.blocks[len(c.blocks)-1] }

// draft is a block under construction.
type draft struct {
	number   uint64
	time     uint64
	extra    []byte
	gas      uint64
	txs      []transaction
	receipts []*types.Receipt
	others   [][]*types.Log             // for each receipt, its events in the form that the receipt does not have
	accounts map[common.Address]account // after the block; not modified once it is sealed
}

func (d *draft) add(tx transaction, gas uint64, status uint64, price *big.Int, logs, others []*types.Log) {
	d.gas += gas
	if logs == nil {
		logs = []*types.Log{}
	}
	r := &types.Receipt{
		Type: tx.Type(), Status: status, CumulativeGasUsed: d.gas, GasUsed: gas, Logs: logs,
		TxHash: tx.Hash(), EffectiveGasPrice: price, TransactionIndex: uint(len(d.txs)),
	}
	r.Bloom = types.CreateBloom(r)
	d.txs, d.receipts, d.others = append(d.txs, tx), append(d.receipts, r), append(d.others, others)
}

// addOwn adds a transaction of the chain itself. Its signature is not real but
// made from a hash, so that each is different, in a form that clients accept
// before they read the sender.
func (d *draft) addOwn(from common.Address, input []byte, of common.Hash, i int, logs, others []*types.Log) {
	tx := types.NewTx(&types.LegacyTx{
		Nonce: d.number, GasPrice: new(big.Int), To: &processor, Value: new(big.Int), Data: input,
		V: big.NewInt(27), R: of.Big(), S: big.NewInt(int64(i + 1)),
	})
	d.add(transaction{tx, from}, 0, types.ReceiptStatusSuccessful, new(big.Int), logs, others)
}

// seal makes a block from a draft.
func seal(parent *block, d *draft) *block {
	header := &types.Header{
		UncleHash: types.EmptyUncleHash, Difficulty: new(big.Int), Number: new(big.Int).SetUint64(d.number), GasLimit: gasLimit,
		GasUsed: d.gas, Time: d.time, Extra: d.extra, BaseFee: baseFee, Root: types.EmptyRootHash,
	}
	if parent != nil {
		header.ParentHash = parent.Hash()
	}
	body := &types.Body{}
	for _, tx := range d.txs {
		body.Transactions = append(body.Transactions, tx.Transaction)
	}
	b := &block{Block: types.NewBlock(header, body, d.receipts, trie.NewStackTrie(nil)), draft: d}
	for i, r := range b.receipts {
		r.BlockHash, r.BlockNumber = b.Hash(), b.Number()
		b.number(i, r.Logs)
	}
	for i, logs := range d.others {
		b.number(i, logs)
	}
	return b
}

// number numbers a transaction's logs within the block and appends them.
func (b *block) number(tx int, logs []*types.Log) {
	for _, l := range logs {
		l.BlockHash, l.BlockNumber, l.BlockTimestamp = b.Hash(), b.NumberU64(), b.Time()
		l.TxHash, l.TxIndex, l.Index = b.txs[tx].Hash(), uint(tx), uint(len(b.logs))
		b.logs = append(b.logs, &rpc.Log{
			Address: chain.Address(l.Address), Data: l.Data, Topics: topics(l),
			TxHash: entity.Hash(l.TxHash), TxIndex: uint64(l.TxIndex), Index: uint64(l.Index),
		})
	}
}

// topics converts the topics of a log.
func topics(l *types.Log) (list []entity.Hash) {
	for _, t := range l.Topics {
		list = append(list, entity.Hash(t))
	}
	return list
}

// logs returns the logs of a block of the store, unless it was replaced since.
func (c *Chain) logs(head store.BlockHeader) ([]*rpc.Log, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if head.Number >= uint64(len(c.blocks)) {
		return nil, false
	}
	b := c.blocks[head.Number]
	return b.logs, entity.Hash(b.Hash()) == head.Hash
}

// extend adds a block. Once begun, it is not interrupted.
func (c *Chain) extend(ctx context.Context, b *block) error {
	ops, err := decode(b.NumberU64(), b.txs, b.receipts)
	if err == nil {
		ops.Hash, ops.Time = entity.Hash(b.Hash()), b.Time()
		_, err = c.ents.Apply(context.WithoutCancel(ctx), ops)
	}
	if err != nil {
		return fmt.Errorf("block %d: %w", b.NumberU64(), err)
	}
	c.blocks = append(c.blocks, b)
	c.final = max(c.final, len(c.blocks)-1-maxReorganised)
	for i, tx := range b.txs {
		c.places[tx.Hash()] = place{b, i}
	}
	c.pool.drop(b.accounts)
	return nil
}

// Mine makes a block of the pending transactions, if any.
func (c *Chain) Mine(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine(ctx)
}

func (c *Chain) mine(ctx context.Context) error {
	parent := c.last()
	b, err := c.next(ctx, parent)
	if err != nil {
		return fmt.Errorf("block %d: %w", parent.NumberU64()+1, err)
	}
	return c.extend(ctx, b)
}

// Reorganise replaces the last blocks by as many and one more. Their
// transactions are dropped, or become pending again.
func (c *Chain) Reorganise(ctx context.Context, depth uint64, again bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := uint64(len(c.blocks))
	if most := n - 1 - uint64(c.final); depth == 0 || depth > most {
		return fmt.Errorf("a depth from 1 to %d, please: what is before is final", most)
	}
	base, gone := c.blocks[n-depth-1], c.blocks[n-depth:]
	if err := c.ents.Rewind(context.WithoutCancel(ctx), base.NumberU64()); err != nil {
		return err
	}
	c.forks++
	c.blocks = slices.Clip(c.blocks[:n-depth])
	for _, b := range gone {
		for _, tx := range b.txs {
			delete(c.places, tx.Hash())
			if own, _ := types.Sender(c.signer, tx.Transaction); again && own == tx.from {
				c.pool.put(tx)
			}
		}
	}
	c.pool.drop(base.accounts)
	for range depth + 1 {
		if err := c.mine(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next makes the block after a given one.
func (c *Chain) next(ctx context.Context, parent *block) (_ *block, err error) {
	s, err := stateAfter(ctx, c.ents, parent.NumberU64())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.snap.Close()) }()
	d := &draft{number: s.number, time: max(uint64(c.now().Unix()), parent.Time()+1), extra: fmt.Appendf(nil, "varve devnet %d", c.forks), accounts: maps.Clone(parent.accounts)}
	ended, err := s.expire(ctx)
	if err != nil {
		return nil, err
	}
	if len(ended.processor) > 0 {
		d.addOwn(system, nil, parent.Hash(), 0, ended.processor, ended.registry)
	}
	for _, tx := range c.pool.executable(parent.accounts) {
		if d.gas+intrinsicGas(tx.Data()) > gasLimit || len(d.txs) > 1<<14 {
			break
		}
		if err := execute(ctx, s, d, tx); err != nil {
			return nil, err
		}
	}
	return seal(parent, d), nil
}

// execute adds a transaction to a block. A failure is recorded in its receipt.
func execute(ctx context.Context, s *state, d *draft, tx transaction) error {
	gas := intrinsicGas(tx.Data())
	tip, err := tx.EffectiveGasTip(baseFee)
	if err != nil {
		return err // the pool has seen to it
	}
	price := tip.Add(tip, baseFee)
	from := d.accounts[tx.from]
	spent := new(big.Int).Mul(price, new(big.Int).SetUint64(gas))
	d.accounts[tx.from] = account{from.nonce + 1, new(big.Int).Sub(from.balance, spent)}

	told, others, mirrors, err := s.run(ctx, tx)
	var broken *brokenError
	if errors.As(err, &broken) {
		return err
	}
	if err != nil {
		d.add(tx, gas, types.ReceiptStatusFailed, price, nil, nil)
		return nil
	}
	d.pay(tx.from, *tx.To(), tx.Value())
	d.add(tx, gas, types.ReceiptStatusSuccessful, price, told, others)
	for i, m := range mirrors {
		d.addOwn(tx.from, m.input, tx.Hash(), i, m.processor, nil)
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

// run executes a transaction, and returns its logs in the transaction's form
// and in the other form. For a transaction in the contract's form, mirrors are
// the equivalent transactions in the processor's form, because a follower reads
// only that form.
func (s *state) run(ctx context.Context, tx transaction) (told, others []*types.Log, mirrors []mirror, err error) {
	switch *tx.To() {
	case processor:
		e, err := s.operations(ctx, tx.Hash(), tx.from, tx.Data())
		return e.processor, e.registry, nil, err
	case registry:
		mirrors, err := s.call(ctx, tx.Hash(), tx.from, tx.Data())
		for _, m := range mirrors {
			told = append(told, m.registry...)
		}
		return told, nil, mirrors, err
	}
	return nil, nil, nil, nil
}

// intrinsicGas is the total cost of a transaction, because no code runs.
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
