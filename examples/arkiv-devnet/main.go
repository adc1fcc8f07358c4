// Arkiv-devnet is an Arkiv chain for development in one process: it takes the transactions
// that Arkiv's SDKs sign, makes blocks of them, and answers queries. Its only store of
// entities is Varve, which gets each block as who follows the chain reads it.
//
//	go run . --listen 127.0.0.1:8545 --block-time 2s sqlite:devnet.db
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/varvedb/varve/store"

	_ "github.com/varvedb/varve/store/sqlite" // links the engine behind sqlite: URLs
)

// keys are the private keys of the funded accounts. Other development chains
// use them too, so wallets know them: never use them elsewhere.
var keys = []string{
	"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	"5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
}

func addresses() (list []common.Address) {
	for _, text := range keys {
		key, err := crypto.HexToECDSA(text)
		if err != nil {
			panic(err)
		}
		list = append(list, crypto.PubkeyToAddress(key.PublicKey))
	}
	return list
}

//go:embed README.md
var readme []byte

// options of a devnet.
type options struct {
	url       string // of the store; empty: a temporary one
	layout    string
	listen    string
	chainID   uint64
	blockTime time.Duration // zero: a block for each transaction, at once
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8545", "address for JSON-RPC over HTTP and WebSocket")
	flag.DurationVar(&o.blockTime, "block-time", 2*time.Second, "time between blocks; 0 makes one for each transaction, at once")
	flag.StringVar(&o.layout, "layout", "compact", "layout of the store: compact or arkiv")
	flag.Uint64Var(&o.chainID, "chain-id", 1337, "the chain's ID")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: arkiv-devnet [flags] [STORE-URL]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.url = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "arkiv-devnet:", err)
		os.Exit(1)
	}
}

// devnet is a chain and its node.
type devnet struct {
	chain  *Chain
	ents   *store.Entities
	server *server
	close  func() error
}

func open(ctx context.Context, o options) (_ *devnet, err error) {
	var undo []func() error
	end := func() (err error) {
		for i := len(undo) - 1; i >= 0; i-- {
			err = errors.Join(err, undo[i]())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, end())
		}
	}()
	if o.url == "" {
		dir, err := os.MkdirTemp("", "arkiv-devnet-")
		if err != nil {
			return nil, err
		}
		undo = append(undo, func() error { return os.RemoveAll(dir) })
		o.url = "sqlite://" + filepath.ToSlash(filepath.Join(dir, "devnet.db")) + "?durability=unsafe"
	}
	db, err := store.Open(ctx, o.url, nil)
	if err != nil {
		return nil, err
	}
	undo = append(undo, db.Close)
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: o.layout})
	if err != nil {
		return nil, err
	}
	if !ents.Temporal() {
		return nil, fmt.Errorf("%w: blocks are made on the one before, which layout %s does not keep; take compact or arkiv", store.ErrUnsupported, ents.Layout())
	}
	if head, err := ents.Head(ctx); err != nil || !head.Empty {
		return nil, errors.Join(err, errors.New("the store has blocks, of a chain that is gone: each run needs a new store"))
	}
	chain, err := newChain(ctx, ents, o.chainID, o.blockTime == 0, addresses())
	if err != nil {
		return nil, err
	}
	server, err := newServer(ctx, chain, o.blockTime, readme) // of no time Varve makes 2 s, with which the SDKs count
	if err != nil {
		return nil, err
	}
	undo = append(undo, server.Close)
	return &devnet{chain, ents, server, end}, nil
}

func run(ctx context.Context, out io.Writer, o options) (err error) {
	d, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: d.server, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(out, "Arkiv devnet, chain %d, on http://%s and ws://%[2]s; a session with the SDKs is shown there.\n", o.chainID, listener.Addr())
	for i, a := range addresses() {
		fmt.Fprintf(out, "account %d: %s, key 0x%s\n", i, a, keys[i])
	}
	failed := make(chan error, 2)
	go func() { failed <- web.Serve(listener) }()
	if o.blockTime > 0 {
		go func() { failed <- d.chain.keepMining(ctx, o.blockTime) }()
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	shut, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, d.server.Close(), web.Shutdown(shut))
	d.chain.mu.Lock() // never unlocked: no further block is made
	return err
}

// keepMining makes a block at each interval.
func (c *Chain) keepMining(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := c.Mine(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
