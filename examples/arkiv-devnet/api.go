package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
)

// object is a JSON object.
type object = map[string]any

// with returns a value as a JSON object with additional fields.
func with(v any, fields object) (object, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	o := object{}
	err = json.Unmarshal(text, &o) // it has no numbers
	maps.Copy(o, fields)
	return o, err
}

// ethAPI has the JSON-RPC methods for clients of the chain.
type ethAPI struct{ chain *Chain }

// find returns a block, or nil.
func (c *Chain) find(at ethrpc.BlockNumberOrHash) *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hash, ok := at.Hash(); ok {
		for _, b := range c.blocks {
			if b.Hash() == hash {
				return b
			}
		}
		return nil
	}
	number, _ := at.Number()
	switch {
	case number == ethrpc.EarliestBlockNumber:
		number = 0
	case number == ethrpc.FinalizedBlockNumber, number == ethrpc.SafeBlockNumber:
		number = ethrpc.BlockNumber(c.final)
	case number < 0:
		return c.last()
	}
	if int(number) >= len(c.blocks) {
		return nil
	}
	return c.blocks[number]
}

func (a *ethAPI) numbered(n ethrpc.BlockNumber) *block {
	return a.chain.find(ethrpc.BlockNumberOrHashWithNumber(n))
}

func (a *ethAPI) hashed(hash common.Hash) *block {
	return a.chain.find(ethrpc.BlockNumberOrHashWithHash(hash, true))
}

// GetBlockByNumber serves eth_getBlockByNumber.
func (a *ethAPI) GetBlockByNumber(number ethrpc.BlockNumber, full bool) (object, error) {
	return blockJSON(a.numbered(number), full)
}

// GetBlockByHash serves eth_getBlockByHash.
func (a *ethAPI) GetBlockByHash(hash common.Hash, full bool) (object, error) {
	return blockJSON(a.hashed(hash), full)
}

func blockJSON(b *block, full bool) (object, error) {
	if b == nil {
		return nil, nil
	}
	txs := make([]any, len(b.txs))
	for i, tx := range b.txs {
		txs[i] = tx.Hash()
		if full {
			var err error
			if txs[i], err = transactionJSON(tx, b, i); err != nil {
				return nil, err
			}
		}
	}
	return with(b.Header(), object{
		"transactions": txs, "uncles": []string{}, "size": hexutil.Uint64(b.Size()), "totalDifficulty": "0x0",
	})
}

// transactionJSON returns a transaction as JSON; without a block it is a
// pending one.
func transactionJSON(tx transaction, b *block, i int) (object, error) {
	fields := object{"from": tx.from, "blockHash": nil, "blockNumber": nil, "transactionIndex": nil}
	if b != nil {
		fields["blockHash"], fields["blockNumber"], fields["transactionIndex"] = b.Hash(), (*hexutil.Big)(b.Number()), hexutil.Uint64(i)
		fields["gasPrice"] = (*hexutil.Big)(b.receipts[i].EffectiveGasPrice)
	} else {
		fields["gasPrice"] = (*hexutil.Big)(tx.GasFeeCap())
	}
	return with(tx.Transaction, fields)
}

func receiptJSON(b *block, i int) (object, error) {
	tx := b.txs[i]
	// The library omits a type of zero, which clients expect.
	return with(b.receipts[i], object{
		"type": hexutil.Uint64(tx.Type()), "from": tx.from, "to": tx.To(), "contractAddress": nil,
	})
}

// GetBlockReceipts serves eth_getBlockReceipts.
func (a *ethAPI) GetBlockReceipts(at ethrpc.BlockNumberOrHash) ([]object, error) {
	b := a.chain.find(at)
	if b == nil {
		return nil, nil
	}
	list := make([]object, len(b.receipts))
	for i := range list {
		var err error
		if list[i], err = receiptJSON(b, i); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// SendRawTransaction serves eth_sendRawTransaction.
func (a *ethAPI) SendRawTransaction(ctx context.Context, raw hexutil.Bytes) (common.Hash, error) {
	return a.chain.Send(ctx, raw)
}

// GetTransactionByHash serves eth_getTransactionByHash.
func (a *ethAPI) GetTransactionByHash(hash common.Hash) (object, error) {
	a.chain.mu.Lock()
	defer a.chain.mu.Unlock()
	if at := a.chain.places[hash]; at.block != nil {
		return transactionJSON(at.block.txs[at.index], at.block, at.index)
	}
	for _, tx := range a.chain.pool.list {
		if tx.Hash() == hash {
			return transactionJSON(tx, nil, 0)
		}
	}
	return nil, nil
}

// count returns how many transactions a block has, or nil.
func count(b *block) *hexutil.Uint {
	if b == nil {
		return nil
	}
	n := hexutil.Uint(len(b.txs))
	return &n
}

// GetBlockTransactionCountByNumber serves eth_getBlockTransactionCountByNumber.
func (a *ethAPI) GetBlockTransactionCountByNumber(number ethrpc.BlockNumber) *hexutil.Uint {
	return count(a.numbered(number))
}

// GetBlockTransactionCountByHash serves eth_getBlockTransactionCountByHash.
func (a *ethAPI) GetBlockTransactionCountByHash(hash common.Hash) *hexutil.Uint {
	return count(a.hashed(hash))
}

func transactionAt(b *block, i hexutil.Uint) (object, error) {
	if b == nil || uint64(i) >= uint64(len(b.txs)) {
		return nil, nil
	}
	return transactionJSON(b.txs[i], b, int(i))
}

// GetTransactionByBlockNumberAndIndex serves eth_getTransactionByBlockNumberAndIndex.
func (a *ethAPI) GetTransactionByBlockNumberAndIndex(number ethrpc.BlockNumber, i hexutil.Uint) (object, error) {
	return transactionAt(a.numbered(number), i)
}

// GetTransactionByBlockHashAndIndex serves eth_getTransactionByBlockHashAndIndex.
func (a *ethAPI) GetTransactionByBlockHashAndIndex(hash common.Hash, i hexutil.Uint) (object, error) {
	return transactionAt(a.hashed(hash), i)
}

// GetTransactionReceipt serves eth_getTransactionReceipt.
func (a *ethAPI) GetTransactionReceipt(hash common.Hash) (object, error) {
	a.chain.mu.Lock()
	at := a.chain.places[hash]
	a.chain.mu.Unlock()
	if at.block == nil {
		return nil, nil
	}
	return receiptJSON(at.block, at.index)
}

// account returns an account after a block.
func (a *ethAPI) account(address common.Address, at *ethrpc.BlockNumberOrHash) (account, error) {
	b := a.chain.head()
	if at != nil {
		if b = a.chain.find(*at); b == nil {
			return account{}, errors.New("unknown block")
		}
	}
	has := b.accounts[address]
	if has.balance == nil {
		has.balance = new(big.Int)
	}
	return has, nil
}

// GetBalance serves eth_getBalance.
func (a *ethAPI) GetBalance(address common.Address, at *ethrpc.BlockNumberOrHash) (*hexutil.Big, error) {
	has, err := a.account(address, at)
	return (*hexutil.Big)(has.balance), err
}

// GetTransactionCount serves eth_getTransactionCount.
func (a *ethAPI) GetTransactionCount(address common.Address, at *ethrpc.BlockNumberOrHash) (hexutil.Uint64, error) {
	has, err := a.account(address, at)
	if at != nil && at.BlockNumber != nil && *at.BlockNumber == ethrpc.PendingBlockNumber {
		a.chain.mu.Lock()
		defer a.chain.mu.Unlock()
		has.nonce = a.chain.pool.next(address, has.nonce)
	}
	return hexutil.Uint64(has.nonce), err
}

// GetCode serves eth_getCode: some code at the addresses to which operations
// are sent, none elsewhere.
func (a *ethAPI) GetCode(address common.Address, _ *ethrpc.BlockNumberOrHash) hexutil.Bytes {
	if address == processor || address == registry {
		return hexutil.Bytes{0xfe}
	}
	return hexutil.Bytes{}
}

// GetStorageAt serves eth_getStorageAt.
func (a *ethAPI) GetStorageAt(common.Address, string, *ethrpc.BlockNumberOrHash) common.Hash {
	return common.Hash{}
}

// tip is the priority fee, above the base fee. Clients need none here.
var tip = big.NewInt(1_000_000)

// GasPrice serves eth_gasPrice.
func (a *ethAPI) GasPrice() *hexutil.Big { return (*hexutil.Big)(new(big.Int).Add(baseFee, tip)) }

// MaxPriorityFeePerGas serves eth_maxPriorityFeePerGas.
func (a *ethAPI) MaxPriorityFeePerGas() *hexutil.Big { return (*hexutil.Big)(tip) }

// FeeHistory serves eth_feeHistory.
func (a *ethAPI) FeeHistory(count math.HexOrDecimal64, newest ethrpc.BlockNumber, percentiles *[]float64) (object, error) {
	last := a.numbered(newest)
	if last == nil {
		return nil, errors.New("unknown block")
	}
	end := int(last.NumberU64())
	first := max(end+1-int(min(uint64(count), 1024)), 0)
	fees, used, rewards := []*hexutil.Big{(*hexutil.Big)(baseFee)}, []float64{}, [][]*hexutil.Big{}
	for n := first; n <= end; n++ {
		b := a.numbered(ethrpc.BlockNumber(n))
		if b == nil {
			break // replaced meanwhile
		}
		fees, used = append(fees, (*hexutil.Big)(baseFee)), append(used, float64(b.GasUsed())/gasLimit)
		if percentiles != nil {
			rewards = append(rewards, slices.Repeat([]*hexutil.Big{(*hexutil.Big)(tip)}, len(*percentiles)))
		}
	}
	answer := object{"oldestBlock": hexutil.Uint64(first), "baseFeePerGas": fees, "gasUsedRatio": used}
	if percentiles != nil {
		answer["reward"] = rewards
	}
	return answer, nil
}

// callArgs are the arguments of a transaction that is only simulated.
type callArgs struct {
	From  *common.Address `json:"from"`
	To    *common.Address `json:"to"`
	Data  *hexutil.Bytes  `json:"data"`
	Input *hexutil.Bytes  `json:"input"`
}

func (c *callArgs) input() []byte {
	if input := cmp.Or(c.Input, c.Data); input != nil {
		return *input
	}
	return nil
}

// revertedError is the error with which a transaction would fail.
type revertedError struct{ error }

// Error implements error.
func (e *revertedError) Error() string { return "execution reverted: " + e.error.Error() }

// ErrorCode is the code by which clients recognise reverted transactions.
func (e *revertedError) ErrorCode() int { return 3 }

// try executes a transaction after the last block, and discards the result.
func (a *ethAPI) try(ctx context.Context, args callArgs) error {
	if args.To == nil {
		return errors.New("there are no contracts here: this chain has no virtual machine")
	}
	s, err := stateAfter(ctx, a.chain.ents, a.chain.head().NumberU64())
	if err != nil {
		return err
	}
	tx := transaction{Transaction: types.NewTx(&types.LegacyTx{To: args.To, Data: args.input()})}
	if args.From != nil {
		tx.from = *args.From
	}
	_, _, _, err = s.run(ctx, tx)
	if closing := s.snap.Close(); closing != nil {
		return closing
	}
	var broken *brokenError
	if err != nil && !errors.As(err, &broken) {
		return &revertedError{err} // as it is, since the server looks for its code
	}
	return err
}

// Call serves eth_call. Operations are only checked.
func (a *ethAPI) Call(ctx context.Context, args callArgs, _ *ethrpc.BlockNumberOrHash, _ *json.RawMessage) (hexutil.Bytes, error) {
	return hexutil.Bytes{}, a.try(ctx, args)
}

// EstimateGas serves eth_estimateGas.
func (a *ethAPI) EstimateGas(ctx context.Context, args callArgs, _ *ethrpc.BlockNumberOrHash, _ *json.RawMessage) (hexutil.Uint64, error) {
	return hexutil.Uint64(intrinsicGas(args.input())), a.try(ctx, args)
}

// devnetAPI has the methods that only a development chain has.
type devnetAPI struct{ chain *Chain }

// maxMined bounds the blocks of one call, because a call cannot be stopped.
const maxMined = 10_000

// Mine serves devnet_mine: it makes n blocks, by default one.
func (a *devnetAPI) Mine(ctx context.Context, n *uint64) (hexutil.Uint64, error) {
	count := uint64(1)
	if n != nil {
		count = *n
	}
	if count > maxMined {
		return 0, fmt.Errorf("%d blocks, at most %d are made in a call; repeat it for more", count, maxMined)
	}
	for range count {
		if err := a.chain.Mine(ctx); err != nil {
			return 0, err
		}
	}
	return hexutil.Uint64(a.chain.head().NumberU64()), nil
}

// Reorg serves devnet_reorg: it replaces the last blocks, and returns the
// number of the new last one. With again, their transactions become pending
// again.
func (a *devnetAPI) Reorg(ctx context.Context, depth uint64, again *bool) (hexutil.Uint64, error) {
	err := a.chain.Reorganise(ctx, depth, again != nil && *again)
	return hexutil.Uint64(a.chain.head().NumberU64()), err
}
