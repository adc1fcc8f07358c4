package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served is a devnet that a test has started.
type served struct {
	*devnet
	url string
}

// newDevnet starts one that makes blocks at once.
func newDevnet(t *testing.T, layout string) *served {
	t.Helper()
	d, err := open(t.Context(), options{
		url: "sqlite://" + filepath.Join(t.TempDir(), "devnet.db") + "?durability=unsafe", layout: layout, chainID: 1337,
	})
	check(t, err)
	web := httptest.NewServer(d.server)
	t.Cleanup(func() {
		check(t, d.server.Close())
		web.Close()
		check(t, d.close())
	})
	return &served{d, web.URL}
}

// verify checks the store, and that it is at the chain's last block.
func (d *served) verify(t *testing.T) {
	t.Helper()
	head, err := d.ents.Head(t.Context())
	check(t, err)
	if last := d.chain.head(); head.Number != last.NumberU64() || head.Hash != entity.Hash(last.Hash()) {
		t.Errorf("the store is at block %d %s, the chain at %d %s", head.Number, head.Hash, last.NumberU64(), last.Hash())
	}
	_, err = d.ents.Verify(t.Context())
	check(t, err)
}

// TestRun starts the command, which makes blocks every so often, and stops it.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	url := "sqlite://" + filepath.Join(t.TempDir(), "devnet.db")
	o := options{url: url, listen: "127.0.0.1:0", chainID: 1337, layout: "compact", blockTime: 10 * time.Millisecond}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(run(ctx, in, o), in.Close()) }()
	lines := bufio.NewScanner(out)
	lines.Scan()
	_, rest, _ := strings.Cut(lines.Text(), " on ")
	address, _, ok := strings.Cut(rest, " and ")
	if !ok {
		t.Fatalf("it says %q, then %v", lines.Text(), <-ended)
	}
	for _, want := range []string{"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"} {
		if lines.Scan(); !strings.Contains(lines.Text(), want) {
			t.Errorf("%q lacks %s", lines.Text(), want)
		}
	}
	client, err := ethrpc.Dial(address)
	check(t, err)
	defer client.Close()
	for number := hexutil.Uint64(0); number < 3; {
		check(t, client.CallContext(ctx, &number, "eth_blockNumber"))
	}
	page, err := http.Get(address)
	check(t, err)
	defer page.Body.Close()
	if text, err := io.ReadAll(page.Body); err != nil || !strings.Contains(string(text), "createWalletClient") || page.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%v: %s", err, text)
	}
	stop()
	check(t, <-ended)
	if _, err := open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a new store") {
		t.Errorf("a store of another run: %v", err)
	}
	if _, err := open(t.Context(), options{layout: "simple", chainID: 1337}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("a layout without history: %v", err)
	}
}
