package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/varvedb/varve/node/chain"
)

// inContract returns a call to the contract that creates an entity.
func inContract(t *testing.T, contentType string, names ...string) []byte {
	t.Helper()
	o := contractOp{OperationType: 1, ExpiresAt: 1000}
	for i := range contentType {
		o.ContentType.Data[i/32][i%32] = contentType[i]
	}
	for _, name := range names {
		a := contractAttribute{ValueType: valueNumber}
		copy(a.Name[:], name)
		o.Attributes = append(o.Attributes, a)
	}
	input, err := contract.Pack("execute", []contractOp{o})
	check(t, err)
	return input
}

// TestRules sends operations that Arkiv accepts and operations that it refuses,
// in both forms.
func TestRules(t *testing.T) {
	d := newDevnet(t, "compact")
	expect := func(what string, r *types.Receipt, ok bool) {
		t.Helper()
		if (r.Status == types.ReceiptStatusSuccessful) != ok {
			t.Errorf("%s: status %d, want success: %t", what, r.Status, ok)
		}
	}
	for name, ok := range map[string]bool{
		"a": true, "_": true, "Type_9": true, "größe": true, "日本": true, "and": true,
		"": false, "a-b": false, "a.b": false, "9a": false, "a b": false, "a\n": false, "$a": false, "a$": false, "x`": false,
	} {
		text, number := create(10, "x"), create(10, "x")
		text.Strings[name], number.Numbers = "x", map[string]uint64{name: 1}
		for _, c := range []chain.Create{text, number} {
			expect(fmt.Sprintf("name %q", name), d.send(t, 0, chain.Operations{Creates: []chain.Create{c}}), ok)
		}
	}
	made := d.send(t, 0, chain.Operations{Creates: []chain.Create{create(1000, "x")}})
	update := chain.Update{Key: [32]byte(made.Logs[0].Topics[1]), Create: create(10, "x")}
	update.Strings = map[string]string{"a-b": "x"}
	expect("an update", d.send(t, 0, chain.Operations{Updates: []chain.Update{update}}), false)
	for kind, ok := range map[string]bool{"": false, "x": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false} {
		c := create(10, "x")
		c.ContentType = kind
		expect("content type "+kind, d.send(t, 0, chain.Operations{Creates: []chain.Create{c}}), ok)
	}
	many := chain.Operations{Creates: make([]chain.Create, maxOperations+1)}
	for i := range many.Creates {
		many.Creates[i] = create(10, fmt.Sprint(i))
	}
	expect("many operations", d.send(t, 0, many), false)

	for name, ok := range map[string]bool{
		"a": true, "a-b.c_9": true, strings.Repeat("a", 32): true,
		"": false, "A": false, "a_B": false, "_a": false, "9": false, "größe": false, "a b": false, "a\x00b": false,
	} {
		expect(fmt.Sprintf("the contract's name %q", name), d.sendInput(t, 0, registry, inContract(t, "text/plain", name)), ok)
	}
	for kind, ok := range map[string]bool{
		"text/plain; charset=utf-8": true, "application/vnd.a+json;a=b;c=d": true,
		"": false, "text": false, "text/": false, "Text/plain": false, "text/plain;": false, "text/plain; charset": false, "text/plain; a=\"b\"": false,
	} {
		expect("the contract's content type "+kind, d.sendInput(t, 0, registry, inContract(t, kind)), ok)
	}
	names := make([]string, maxAttributes+1)
	for i := range names {
		names[i] = fmt.Sprintf("a%02d", i)
	}
	expect("as many attributes as there may be", d.sendInput(t, 0, registry, inContract(t, "a/b", names[1:]...)), true)
	expect("one attribute more", d.sendInput(t, 0, registry, inContract(t, "a/b", names...)), false)
	expect("attributes in another order", d.sendInput(t, 0, registry, inContract(t, "a/b", "b", "a")), false)
	expect("an attribute twice", d.sendInput(t, 0, registry, inContract(t, "a/b", "a", "a")), false)
	d.verify(t)
}

// TestFinal: no block is replaced that was called final.
func TestFinal(t *testing.T) {
	d := newDevnet(t, "compact")
	client, err := ethrpc.Dial(d.url)
	check(t, err)
	defer client.Close()
	block := func(at string) (b struct {
		Number hexutil.Uint64
		Hash   common.Hash
	}) {
		t.Helper()
		check(t, client.CallContext(t.Context(), &b, "eth_getBlockByNumber", at, false))
		return b
	}
	var n hexutil.Uint64
	check(t, client.CallContext(t.Context(), &n, "devnet_mine", 100))
	for i := range hexutil.Uint64(3) {
		final := block("finalized")
		if final.Number != 100-maxReorganised+i || block("safe") != final {
			t.Errorf("block %d is final, and block %d safe", final.Number, block("safe").Number)
		}
		depth := uint64(block("latest").Number - final.Number)
		if err := client.CallContext(t.Context(), &n, "devnet_reorg", depth+1); err == nil || !strings.Contains(err.Error(), "final") {
			t.Errorf("a reorganisation of a final block: %v", err)
		}
		check(t, client.CallContext(t.Context(), &n, "devnet_reorg", depth))
		if got := block(final.Number.String()); got != final {
			t.Errorf("block %d is another one now", final.Number)
		}
	}
	d.verify(t)
}

// TestTransactionsOfBlocks counts them, and gets them by their place.
func TestTransactionsOfBlocks(t *testing.T) {
	d := newDevnet(t, "compact")
	client, err := ethrpc.Dial(d.url)
	check(t, err)
	defer client.Close()
	r := d.send(t, 0, chain.Operations{Creates: []chain.Create{create(10, "one")}})
	in := map[string]any{"Number": hexutil.EncodeBig(r.BlockNumber), "Hash": r.BlockHash}
	out := map[string]any{"Number": "0x99", "Hash": common.Hash{1}}
	ask := func(method string, params ...any) (got json.RawMessage) {
		t.Helper()
		check(t, client.CallContext(t.Context(), &got, method, params...))
		return got
	}
	for by := range in {
		if got := ask("eth_getBlockTransactionCountBy"+by, in[by]); string(got) != `"0x1"` {
			t.Errorf("%s transactions", got)
		}
		if got := ask("eth_getBlockTransactionCountBy"+by, out[by]); string(got) != "null" {
			t.Errorf("%s transactions of no block", got)
		}
		if got, want := ask("eth_getTransactionByBlock"+by+"AndIndex", in[by], "0x0"), ask("eth_getTransactionByHash", r.TxHash); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
		for _, no := range []json.RawMessage{ask("eth_getTransactionByBlock"+by+"AndIndex", in[by], "0x1"), ask("eth_getTransactionByBlock"+by+"AndIndex", out[by], "0x0")} {
			if string(no) != "null" {
				t.Errorf("a transaction where there is none: %s", no)
			}
		}
	}
}
