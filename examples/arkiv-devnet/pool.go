package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// The limits of the pool.
const (
	maxWaiting = 10_000
	maxAhead   = 1_000 // nonces that an account may be ahead
)

// pool has the pending transactions, in the order of their arrival.
type pool struct {
	list []transaction
	of   map[common.Address]map[uint64]transaction
}

func newPool() pool { return pool{of: map[common.Address]map[uint64]transaction{}} }

func (p *pool) put(tx transaction) {
	if p.of[tx.from] == nil {
		p.of[tx.from] = map[uint64]transaction{}
	}
	if _, twice := p.of[tx.from][tx.Nonce()]; twice {
		return
	}
	p.of[tx.from][tx.Nonce()] = tx
	p.list = append(p.list, tx)
}

// drop removes transactions that can no longer be executed after a block.
func (p *pool) drop(accounts map[common.Address]account) {
	p.list = slices.DeleteFunc(p.list, func(tx transaction) bool {
		old := tx.Nonce() < accounts[tx.from].nonce
		if old {
			delete(p.of[tx.from], tx.Nonce())
		}
		return old
	})
}

// next returns an account's nonce after its pending transactions.
func (p *pool) next(from common.Address, nonce uint64) uint64 {
	for {
		if _, ok := p.of[from][nonce]; !ok {
			return nonce
		}
		nonce++
	}
}

// executable returns the transactions for the next block: for each account
// without gaps in the nonces, and as far as its balance suffices.
func (p *pool) executable(accounts map[common.Address]account) (list []transaction) {
	nonce, left := map[common.Address]uint64{}, map[common.Address]*big.Int{}
	var take func(tx transaction)
	take = func(tx transaction) {
		from := tx.from
		if _, ok := left[from]; !ok {
			nonce[from], left[from] = accounts[from].nonce, new(big.Int)
			if b := accounts[from].balance; b != nil {
				left[from].Set(b)
			}
		}
		if tx.Nonce() != nonce[from] || left[from].Cmp(tx.Cost()) < 0 {
			return
		}
		nonce[from]++
		left[from].Sub(left[from], tx.Cost())
		list = append(list, tx)
		if after, ok := p.of[from][nonce[from]]; ok { // it may have come before
			take(after)
		}
	}
	for _, tx := range p.list {
		take(tx)
	}
	return list
}

// Send accepts a signed transaction. If blocks are made immediately, it is in a
// block when Send returns, unless an earlier transaction of the sender is
// missing.
func (c *Chain) Send(ctx context.Context, raw []byte) (common.Hash, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return common.Hash{}, fmt.Errorf("not a transaction: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.accept(tx); err != nil {
		return common.Hash{}, err
	}
	// It may have to wait for an earlier transaction.
	if !c.atOnce || len(c.pool.executable(c.last().accounts)) == 0 {
		return tx.Hash(), nil
	}
	return tx.Hash(), c.mine(context.WithoutCancel(ctx))
}

// accept puts a transaction into the pool.
func (c *Chain) accept(tx *types.Transaction) error {
	if tx.Type() > types.DynamicFeeTxType {
		return types.ErrTxTypeNotSupported
	}
	if !tx.Protected() {
		return errors.New("the signature is not for this chain alone (EIP-155)")
	}
	from, err := types.Sender(c.signer, tx)
	if err != nil {
		return err
	}
	need := intrinsicGas(tx.Data())
	switch {
	case tx.To() == nil:
		return errors.New("there are no contracts here: this chain has no virtual machine")
	case tx.Gas() < need:
		return fmt.Errorf("intrinsic gas too low: have %d, want %d", tx.Gas(), need)
	case need > gasLimit:
		return errors.New("exceeds block gas limit")
	case tx.GasFeeCap().Cmp(baseFee) < 0:
		return fmt.Errorf("max fee per gas less than block base fee: %v, base fee %v", tx.GasFeeCap(), baseFee)
	}
	has := c.last().accounts[from]
	if has.balance == nil {
		has.balance = new(big.Int)
	}
	known, waits := c.pool.of[from][tx.Nonce()]
	switch {
	case tx.Nonce() < has.nonce:
		return fmt.Errorf("nonce too low: next nonce %d, tx nonce %d", has.nonce, tx.Nonce())
	case tx.Nonce() > has.nonce+maxAhead:
		return fmt.Errorf("nonce too high: next nonce %d, tx nonce %d", has.nonce, tx.Nonce())
	case waits && known.Hash() == tx.Hash():
		return errors.New("already known")
	case waits:
		return errors.New("replacement transaction underpriced: another one waits with this nonce")
	case has.balance.Cmp(tx.Cost()) < 0:
		return fmt.Errorf("insufficient funds for gas * price + value: balance %v, tx cost %v", has.balance, tx.Cost())
	case len(c.pool.list) >= maxWaiting:
		return errors.New("txpool is full")
	}
	c.pool.put(transaction{tx, from})
	return nil
}
