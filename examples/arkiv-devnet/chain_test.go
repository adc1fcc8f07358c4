package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

func keyPair(t *testing.T, i int) (*ecdsa.PrivateKey, common.Address) {
	t.Helper()
	key, err := crypto.HexToECDSA(keys[i])
	check(t, err)
	return key, crypto.PubkeyToAddress(key.PublicKey)
}

// signed returns a transaction of one of the accounts as a wallet sends it.
func signed(t *testing.T, i int, nonce uint64, to *common.Address, input []byte, change func(*types.DynamicFeeTx)) []byte {
	t.Helper()
	key, _ := keyPair(t, i)
	tx := &types.DynamicFeeTx{
		ChainID: big.NewInt(1337), Nonce: nonce, To: to, Data: input, Gas: intrinsicGas(input),
		GasFeeCap: big.NewInt(2_000_000_000), GasTipCap: big.NewInt(1_000_000),
	}
	if change != nil {
		change(tx)
	}
	raw, err := types.MustSignNewTx(key, types.LatestSignerForChainID(tx.ChainID), tx).MarshalBinary()
	check(t, err)
	return raw
}

// send has operations in a block, and returns the transaction's receipt.
func (d *served) send(t *testing.T, i int, ops chain.Operations) *types.Receipt {
	t.Helper()
	input, err := ops.Encode()
	check(t, err)
	return d.sendInput(t, i, processor, input)
}

func (d *served) sendInput(t *testing.T, i int, to common.Address, input []byte) *types.Receipt {
	t.Helper()
	_, from := keyPair(t, i)
	hash, err := d.chain.Send(t.Context(), signed(t, i, d.chain.head().accounts[from].nonce, &to, input, nil))
	check(t, err)
	d.chain.mu.Lock()
	defer d.chain.mu.Unlock()
	at, ok := d.chain.places[hash]
	if !ok {
		t.Fatal("no block has the transaction")
	}
	return at.block.receipts[at.index]
}

func create(btl uint64, name string) chain.Create {
	return chain.Create{BTL: btl, ContentType: "text/plain", Payload: []byte(name), Strings: map[string]string{"name": name}}
}

// TestReorganise reorganises a chain of random operations again and again while a client
// pages. In the end a store that has followed the last chain alone has the same digest.
func TestReorganise(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv"} {
		t.Run(layout, func(t *testing.T) {
			d := newDevnet(t, layout)
			ctx, stop := context.WithCancel(t.Context())
			paged := make(chan error, 1)
			go func() { paged <- page(ctx, d.url) }()
			rng := rand.New(rand.NewPCG(1, 2))
			var live []entity.Key
			for range 120 {
				var ops chain.Operations
				for range 1 + rng.IntN(3) {
					ops.Creates = append(ops.Creates, create(uint64(1+rng.IntN(30)), fmt.Sprint(rng.Uint64())))
				}
				if len(live) > 0 { // it may be gone, or another's: then the transaction fails
					switch key := live[rng.IntN(len(live))]; rng.IntN(4) {
					case 0:
						ops.Deletes = append(ops.Deletes, key)
					case 1:
						ops.Updates = append(ops.Updates, chain.Update{Key: key, Create: create(20, "changed")})
					case 2:
						ops.Extensions = append(ops.Extensions, chain.Extension{Key: key, Blocks: 9})
					case 3:
						_, to := keyPair(t, rng.IntN(3))
						ops.OwnerChanges = append(ops.OwnerChanges, chain.OwnerChange{Key: key, Owner: entity.Address(to)})
					}
				}
				for _, l := range d.send(t, rng.IntN(3), ops).Logs {
					live = append(live, entity.Key(l.Topics[1]))
				}
				if rng.IntN(6) == 0 {
					depth := 1 + rng.Uint64N(min(20, d.chain.head().NumberU64()))
					check(t, d.chain.Reorganise(t.Context(), depth, rng.IntN(2) == 0))
				}
			}
			stop()
			check(t, <-paged)
			d.verify(t)
			followed(t, d)
		})
	}
}

// page pages through all entities until it is stopped. A page may be of a block
// that was replaced since, which is a separate error, but never of two blocks.
func page(ctx context.Context, url string) error {
	client, err := ethrpc.Dial(url)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		block, options := "", map[string]any{"resultsPerPage": "0x5"}
		for {
			var got struct {
				Block  string `json:"blockNumber"`
				Cursor string `json:"cursor"`
			}
			err := client.CallContext(context.Background(), &got, "arkiv_query", "$all", options)
			if err != nil {
				var coded ethrpc.Error
				if errors.As(err, &coded) && coded.ErrorCode() == -32014 { // rewound
					break
				}
				return err
			}
			if block != "" && got.Block != block {
				return fmt.Errorf("a page of block %s after one of block %s", got.Block, block)
			}
			block = got.Block
			if got.Cursor == "" {
				break
			}
			options["atBlock"], options["cursor"] = got.Block, got.Cursor
		}
	}
	return nil
}

// followed follows a devnet as varve follow does, and compares.
func followed(t *testing.T, d *served) {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "other.db")+"?durability=unsafe", nil)
	check(t, err)
	defer db.Close()
	ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: "arkiv"})
	check(t, err)
	f := chain.Follower{Client: &chain.Client{URL: d.url, Attempts: 1}, Store: ents, Once: true}
	check(t, f.Run(t.Context()))
	got, err := ents.Head(t.Context())
	check(t, err)
	want, err := d.ents.Head(t.Context())
	check(t, err)
	if got != want {
		t.Errorf("a store that followed is at %+v, the devnet's at %+v", got, want)
	}
}

// TestRefused sends what no block may have, and what fails in one.
func TestRefused(t *testing.T) {
	d := newDevnet(t, "compact")
	ops := chain.Operations{Creates: []chain.Create{create(10, "one")}}
	input, err := ops.Encode()
	check(t, err)
	for want, raw := range map[string][]byte{
		"not a transaction":     []byte("no"),
		"invalid chain id":      signed(t, 0, 0, &processor, input, func(tx *types.DynamicFeeTx) { tx.ChainID = big.NewInt(1) }),
		"no virtual machine":    signed(t, 0, 0, nil, input, nil),
		"intrinsic gas too low": signed(t, 0, 0, &processor, input, func(tx *types.DynamicFeeTx) { tx.Gas-- }),
		"less than block base":  signed(t, 0, 0, &processor, input, func(tx *types.DynamicFeeTx) { tx.GasFeeCap, tx.GasTipCap = big.NewInt(1), big.NewInt(1) }),
		"insufficient funds":    signed(t, 0, 0, &processor, input, func(tx *types.DynamicFeeTx) { tx.Value = new(big.Int).Lsh(big.NewInt(1), 100) }),
		"nonce too high":        signed(t, 0, 5000, &processor, input, nil),
	} {
		if _, err := d.chain.Send(t.Context(), raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if n := d.chain.head().NumberU64(); n != 0 {
		t.Errorf("block %d has something", n)
	}
	twice := ops
	twice.Creates = append(twice.Creates, create(0, "no blocks"))
	for _, r := range []*types.Receipt{
		d.sendInput(t, 0, processor, []byte("not Brotli")), d.sendInput(t, 0, registry, []byte("not a call")),
		d.send(t, 0, twice), d.send(t, 0, chain.Operations{Deletes: []entity.Key{{1}}}),
		d.send(t, 0, chain.Operations{Creates: []chain.Create{{BTL: 1, Strings: map[string]string{"$owner": "me"}}}}),
	} {
		if r.Status != types.ReceiptStatusFailed || len(r.Logs) > 0 {
			t.Errorf("transaction %s has status %d, %d logs", r.TxHash, r.Status, len(r.Logs))
		}
	}
	if r := d.send(t, 0, ops); r.Status != types.ReceiptStatusSuccessful {
		t.Error("after failures nothing succeeds")
	}
	d.verify(t)
}

// TestNonces sends transactions in another order than that of their nonces.
func TestNonces(t *testing.T) {
	d := newDevnet(t, "compact")
	_, from := keyPair(t, 0)
	ops := chain.Operations{Creates: []chain.Create{create(10, "one")}}
	input, err := ops.Encode()
	check(t, err)
	client, err := ethrpc.Dial(d.url)
	check(t, err)
	defer client.Close()
	count := func(at string) (n hexutil.Uint64) {
		check(t, client.CallContext(t.Context(), &n, "eth_getTransactionCount", from, at))
		return n
	}
	for i, want := range []struct{ nonce, latest, pending uint64 }{{2, 0, 0}, {1, 0, 0}, {0, 3, 3}, {3, 4, 4}} {
		_, err := d.chain.Send(t.Context(), signed(t, 0, want.nonce, &processor, input, nil))
		check(t, err)
		if l, p := count("latest"), count("pending"); uint64(l) != want.latest || uint64(p) != want.pending {
			t.Errorf("after %d: %d and %d, want %+v", i, l, p, want)
		}
	}
	if _, err := d.chain.Send(t.Context(), signed(t, 0, 3, &processor, input, nil)); err == nil || !strings.Contains(err.Error(), "nonce too low") {
		t.Error(err)
	}
	d.verify(t)
}

// TestMine refuses more blocks in a call than it makes, and says so as clients understand.
func TestMine(t *testing.T) {
	d := newDevnet(t, "compact")
	client, err := ethrpc.Dial(d.url)
	check(t, err)
	defer client.Close()
	for _, c := range []struct {
		n    any
		want string
	}{{1_000_000, "at most 10000"}, {"many", "invalid argument 0"}} {
		err := client.CallContext(t.Context(), nil, "devnet_mine", c.n)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Go") {
			t.Errorf("devnet_mine %v: %v", c.n, err)
		}
	}
	if n := d.chain.head().NumberU64(); n != 0 {
		t.Errorf("%d blocks were made", n)
	}
}

// TestEvents: over one connection the chain makes blocks and Varve tells of them, also of those
// that a reorganisation takes back.
func TestEvents(t *testing.T) {
	d := newDevnet(t, "compact")
	client, err := ethrpc.Dial("ws" + strings.TrimPrefix(d.url, "http"))
	check(t, err)
	defer client.Close()
	logs := make(chan types.Log, 100)
	sub, err := client.EthSubscribe(t.Context(), logs, "logs", map[string]any{"address": processor})
	check(t, err)
	defer sub.Unsubscribe()
	r := d.send(t, 0, chain.Operations{Creates: []chain.Create{create(2, "short")}}) // block 1
	told := func(want ...string) {
		t.Helper()
		what := map[common.Hash]string{common.Hash(chain.TopicCreated): "created", common.Hash(chain.TopicExpired): "expired"}
		for _, want := range want {
			l := <-logs
			if got := fmt.Sprintf("%s %d %v", what[l.Topics[0]], l.BlockNumber, l.Removed); got != want || l.Topics[1] != r.Logs[0].Topics[1] {
				t.Errorf("told %s of %s, want %s of %s", got, l.Topics[1], want, r.Logs[0].Topics[1])
			}
		}
	}
	var n hexutil.Uint64
	check(t, client.CallContext(t.Context(), &n, "devnet_mine", 2)) // it expires in 3
	told("created 1 false", "expired 3 false")
	check(t, client.CallContext(t.Context(), &n, "devnet_reorg", 3, true))
	if n != 4 {
		t.Errorf("block %d after the reorganisation", n)
	}
	told("expired 3 true", "created 1 true", "created 1 false", "expired 3 false")
	d.verify(t)
}
