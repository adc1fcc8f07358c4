package node

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/chain/chaintest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Chain is a chain that this process serves over JSON-RPC.
type Chain struct {
	Close func() error // ends the server

	expect *bench.Expectation // of a store that has followed it
	client *chain.Client
}

// NewChain makes a chain of blocks, whose numbers do not matter, until they have so many bytes of
// payloads: it holds all of them. The caller closes it.
func NewChain(ctx context.Context, blocks iter.Seq2[entity.Block, error], most int) (*Chain, error) {
	made, expect := chaintest.New(chainID, 1), bench.NewExpectation(true)
	err := expect.Apply(&made.Blocks()[0])
	for b, broken := range blocks {
		if err == nil {
			err = broken
		}
		if err != nil || most <= 0 {
			break
		}
		if b, err = made.Give(b.Ops); err == nil {
			err = expect.Apply(&b)
		}
		made.Reveal(0)
		for i := range b.Ops {
			most -= len(b.Ops[i].Content)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	c := &Chain{expect: expect}
	c.client, c.Close, err = serveChain(ctx, made)
	return c, err
}

// serveChain has a client of a chain that is served until it is closed.
func serveChain(ctx context.Context, c *chaintest.Chain) (client *chain.Client, end func() error, err error) {
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(on) }() // until it is closed
	return &chain.Client{URL: "http://" + on.Addr().String(), Attempts: 3}, server.Close, nil
}

// Follow has an empty store follow the chain to its end. It returns the rows that the store has
// then and how long that took, and fails with bench.ErrMismatch when it is not what it should be.
func (c *Chain) Follow(ctx context.Context, ents *store.Entities) (rows uint64, took time.Duration, err error) {
	f := chain.Follower{Client: c.client, Store: ents, Once: true}
	start := time.Now()
	err = f.Run(ctx)
	took = time.Since(start)
	if err == nil {
		err = c.expect.Check(ctx, ents)
	}
	if err != nil {
		err = fmt.Errorf("node: %w", err)
	}
	return c.expect.Counts().Rows(), took, err
}
