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
)

// Chain is a chain that is served over JSON-RPC on this machine.
type Chain struct {
	Rows   int   // of the versions that its blocks make, as bench.Written counts them
	Bytes  int64 // of their payloads
	Blocks uint64

	url    string
	server *http.Server
	expect *bench.Expectation
}

// NewChain makes a chain of blocks, whose numbers do not matter, until they have so many bytes of
// payloads: it holds all of them. The caller closes it.
func NewChain(ctx context.Context, blocks iter.Seq2[store.Block, error], most int64) (*Chain, error) {
	made := chaintest.New(chainID, 1)
	c := &Chain{expect: bench.NewExpectation(true)}
	for _, b := range made.Blocks() {
		if err := c.expect.Apply(&b); err != nil {
			return nil, err
		}
	}
	for b, err := range blocks {
		if err != nil {
			return nil, err
		}
		if b, err = made.Give(b.Ops); err == nil {
			err = c.expect.Apply(&b)
		}
		if err != nil {
			return nil, err
		}
		made.Reveal(0)
		_, rows := bench.Written(&b)
		c.Rows, c.Blocks = c.Rows+rows, b.Number
		for i := range b.Ops {
			c.Bytes += int64(len(b.Ops[i].Content))
		}
		if c.Bytes >= most {
			break
		}
	}
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.url, c.server = "http://"+on.Addr().String(), &http.Server{Handler: made, ReadHeaderTimeout: patience}
	go func() { _ = c.server.Serve(on) }() // until it is closed
	return c, nil
}

// Close ends the server.
func (c *Chain) Close() error { return c.server.Close() }

// Follow has an empty store follow the chain to its end, and returns how long that took. It fails
// with bench.ErrMismatch when the store does not hold then what it should.
func (c *Chain) Follow(ctx context.Context, ents *store.Entities) (time.Duration, error) {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	f := chain.Follower{Client: &chain.Client{URL: c.url, HTTP: client, Attempts: 3}, Store: ents, Once: true}
	start := time.Now()
	err := f.Run(ctx)
	took := time.Since(start)
	if err == nil {
		err = c.expect.Check(ctx, ents)
	}
	if err != nil {
		err = fmt.Errorf("node: %w", err)
	}
	return took, err
}
