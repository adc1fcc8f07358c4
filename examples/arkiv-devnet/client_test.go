package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// dial opens go-ethereum's client over HTTP and over WebSocket.
func dial(t *testing.T, url string) map[string]*ethclient.Client {
	t.Helper()
	clients := map[string]*ethclient.Client{}
	for name, at := range map[string]string{"http": url, "websocket": "ws" + strings.TrimPrefix(url, "http")} {
		client, err := ethclient.Dial(at)
		check(t, err)
		t.Cleanup(client.Close)
		clients[name] = client
	}
	return clients
}

// TestClient reads all blocks, transactions, receipts and logs of a devnet with
// go-ethereum's client: transactions of both forms, with and without success,
// and the chain's own transactions.
func TestClient(t *testing.T) {
	d := newDevnet(t, "compact")
	short := d.send(t, 0, chain.Operations{Creates: []chain.Create{create(3, "short"), create(1000, "long")}})
	d.sendInput(t, 0, registry, inContract(t, "text/plain", "a"))
	d.sendInput(t, 1, registry, []byte("not a call"))
	_, alice := keyPair(t, 0)
	same := []chain.OwnerChange{{Key: entity.Key(short.Logs[1].Topics[1]), Owner: entity.Address(alice)}}
	d.send(t, 0, chain.Operations{OwnerChanges: same})
	sendLegacy(t, d, 1)
	head := d.chain.head().NumberU64()
	for name, client := range dial(t, d.url) {
		kinds := map[common.Hash]int{}
		for n := range head + 1 {
			number := new(big.Int).SetUint64(n)
			b, err := client.BlockByNumber(t.Context(), number)
			check(t, err)
			again, err := client.BlockByHash(t.Context(), b.Hash())
			check(t, err)
			if again.Hash() != b.Hash() || b.NumberU64() != n || b.Hash() != d.chain.blocks[n].Hash() {
				t.Errorf("%s: block %d is %s, and by its hash %s", name, n, b.Hash(), again.Hash())
			}
			receipts, err := client.BlockReceipts(t.Context(), ethrpc.BlockNumberOrHashWithHash(b.Hash(), true))
			check(t, err)
			logs, err := client.FilterLogs(t.Context(), ethereum.FilterQuery{FromBlock: number, ToBlock: number})
			check(t, err)
			var told []types.Log
			for i, tx := range b.Transactions() {
				r, err := client.TransactionReceipt(t.Context(), tx.Hash())
				check(t, err)
				if r.TxHash != receipts[i].TxHash || r.Type != tx.Type() {
					t.Errorf("%s: block %d: receipt %d is of %s, type %d, the transaction %s of type %d", name, n, i, r.TxHash, r.Type, tx.Hash(), tx.Type())
				}
				for _, l := range r.Logs {
					told = append(told, *l)
				}
			}
			if len(logs) < len(told) {
				t.Fatalf("%s: block %d has %d logs, its receipts have %d", name, n, len(logs), len(told))
			}
			for i, l := range logs {
				kinds[l.Topics[0]]++
				if i < len(told) && fmt.Sprintf("%+v", l) != fmt.Sprintf("%+v", told[i]) {
					t.Errorf("%s: block %d: log %d is %+v, in its receipt %+v", name, n, i, l, told[i])
				}
				if int(l.Index) != i || !slices.ContainsFunc(b.Transactions(), func(tx *types.Transaction) bool { return tx.Hash() == l.TxHash }) {
					t.Errorf("%s: block %d: log %d has index %d and is of transaction %s, which the block does not have", name, n, i, l.Index, l.TxHash)
				}
			}
		}
		want := map[common.Hash]int{
			common.Hash(chain.TopicCreated): 3, common.Hash(chain.TopicOwnerChanged): 1, common.Hash(chain.TopicExpired): 1, topicOperation: 5,
		}
		if fmt.Sprint(kinds) != fmt.Sprint(want) {
			t.Errorf("%s: logs %v, want %v", name, kinds, want)
		}
		batch(t, name, client)
	}
}

// sendLegacy sends a transaction of the first type, whose receipts and JSON name it as well.
func sendLegacy(t *testing.T, d *served, i int) {
	t.Helper()
	key, from := keyPair(t, i)
	tx := types.MustSignNewTx(key, types.LatestSignerForChainID(big.NewInt(1337)), &types.LegacyTx{
		Nonce: d.chain.head().accounts[from].nonce, To: &processor, Gas: intrinsicGas(nil), GasPrice: big.NewInt(2_000_000_000), Value: big.NewInt(0),
	})
	raw, err := tx.MarshalBinary()
	check(t, err)
	_, err = d.chain.Send(t.Context(), raw)
	check(t, err)
	var receipt map[string]json.RawMessage
	client, err := ethrpc.Dial(d.url)
	check(t, err)
	defer client.Close()
	check(t, client.CallContext(t.Context(), &receipt, "eth_getTransactionReceipt", tx.Hash()))
	if string(receipt["type"]) != `"0x0"` {
		t.Errorf("the receipt of a legacy transaction has type %s", receipt["type"])
	}
}

// batch sends as many calls at once as a node of go-ethereum takes, and one more.
func batch(t *testing.T, name string, client *ethclient.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, n := range []int{1000, 1001} {
		list := make([]ethrpc.BatchElem, n)
		for i := range list {
			list[i] = ethrpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{"latest", false}, Result: new(json.RawMessage)}
		}
		check(t, client.Client().BatchCallContext(ctx, list))
		for i, call := range list {
			if (call.Error == nil) != (n == 1000) {
				t.Fatalf("%s: %d calls, call %d: %v", name, n, i, call.Error)
			}
		}
	}
}

// TestClientOfNode reads a store that is served without a chain by means of go-ethereum's
// client.
func TestClientOfNode(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "node.db")+"?durability=unsafe", nil)
	check(t, err)
	defer db.Close()
	ents, err := db.Entities(t.Context(), nil)
	check(t, err)
	for n := uint64(7); n < 20; n++ {
		_, err := ents.Apply(t.Context(), entity.Block{Number: n, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(n)}, BTL: 100}}})
		check(t, err)
	}
	h, err := rpc.New(t.Context(), ents, rpc.Options{})
	check(t, err)
	web := httptest.NewServer(h)
	defer web.Close()
	defer h.Close()
	for name, client := range dial(t, web.URL) {
		ctx := t.Context()
		for _, at := range []int64{7, 19, int64(ethrpc.LatestBlockNumber), int64(ethrpc.EarliestBlockNumber)} {
			b, err := client.BlockByNumber(ctx, big.NewInt(at))
			check(t, err)
			var raw struct{ Hash common.Hash }
			check(t, client.Client().CallContext(ctx, &raw, "eth_getBlockByNumber", "0x"+b.Number().Text(16), false))
			again, err := client.BlockByHash(ctx, raw.Hash)
			check(t, err)
			if again.Hash() != b.Hash() || b.NumberU64() < 7 {
				t.Errorf("%s: block %d, and by its hash %d", name, b.Number(), again.Number())
			}
			receipts, err := client.BlockReceipts(ctx, ethrpc.BlockNumberOrHashWithHash(raw.Hash, false))
			if err != nil || len(receipts) > 0 {
				t.Errorf("%s: receipts of block %d: %v %v", name, b.Number(), receipts, err)
			}
			if n, err := client.TransactionCount(ctx, raw.Hash); err != nil || n != 0 {
				t.Errorf("%s: block %d has %d transactions: %v", name, b.Number(), n, err)
			}
		}
		if _, err := client.BlockByNumber(ctx, big.NewInt(6)); !errors.Is(err, ethereum.NotFound) {
			t.Errorf("%s: a block that is not there: %v", name, err)
		}
		if _, err := client.TransactionReceipt(ctx, common.Hash{1}); !errors.Is(err, ethereum.NotFound) {
			t.Errorf("%s: a receipt: %v", name, err)
		}
		if _, _, err := client.TransactionByHash(ctx, common.Hash{1}); !errors.Is(err, ethereum.NotFound) {
			t.Errorf("%s: a transaction: %v", name, err)
		}
		if p, err := client.SyncProgress(ctx); p != nil || err != nil {
			t.Errorf("%s: it syncs: %v %v", name, p, err)
		}
		for what, ask := range map[string]func(context.Context) (*big.Int, error){"price": client.SuggestGasPrice, "tip": client.SuggestGasTipCap} {
			if n, err := ask(ctx); err != nil || n.Sign() != 0 {
				t.Errorf("%s: %s %v: %v", name, what, n, err)
			}
		}
		fees, err := client.FeeHistory(ctx, 5, nil, []float64{10, 50})
		check(t, err)
		if fees.OldestBlock.Uint64() != 15 || len(fees.BaseFee) != 6 || len(fees.Reward) != 5 || len(fees.Reward[0]) != 2 {
			t.Errorf("%s: fees %+v", name, fees)
		}
		batch(t, name, client)
	}
}
