// Package node measures an Arkiv node as its clients see it: the calls of the
// network's SDKs, over JSON-RPC on loopback, while the node follows a chain.
// Clients, chain and node share the machine. Every answer is checked: its block
// must have been the head at some time during the call, and its content must be
// right at that block.
package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
)

// SDK is the mix of calls of the network's SDKs: entities, queries paged to the
// end, counts, timings and block numbers. (Older results named "sdk" are of
// sorted queries and polls for logs too.)
const SDK = "sdk-paged"

// Config configures a measurement.
type Config struct {
	Protocol string  // one of Protocols
	Calls    string  // a mix of package mix, such as mix.ByKey or mix.A, or SDK
	Rows     float64 // rows a second of the chain that the node follows meanwhile; 0: the chain does not grow

	// Config has the duration, the number of clients (Workers), the rate and
	// the seed.
	pace.Config

	// Heard, used by tests only, falsifies an answer before it is checked.
	Heard func(kind string, answer []byte) []byte
}

// Outcome is what clients and node did.
type Outcome struct {
	*pace.Outcome // of the calls

	// Follow has the time from when a block was due on the chain until the node
	// had applied it.
	Follow   *latency.Recorder
	Followed float64 // rows a second that the node applied
	Short    bool    // the chain ended before the measurement did
}

// Run follows a chain from the head of a store, serves the store as varve node
// does, and lets clients call it. The oracle knows the store. Rest has the
// blocks that follow; their numbers do not matter.
func Run(ctx context.Context, ents *store.Entities, oracle *mix.Oracle, rest bench.Stream, cfg Config) (out *Outcome, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("node: %s over %s: %w", cfg.Calls, cfg.Protocol, err)
		}
	}()
	f, err := newFeed(ctx, ents, oracle, rest)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.prepare(cfg.Rows * 1.1 * (cfg.WarmUp + cfg.Duration).Seconds()); err != nil {
		return nil, err
	}
	handler, err := rpc.New(ctx, ents, rpc.Options{ChainID: chainID})
	if err != nil {
		return nil, err
	}
	srv, stop, err := serve.Listen(ctx, nil, server.Options{REST: "off", GRPC: "off", Site: &server.Site{Name: "Arkiv", Handler: handler}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	l := &load{Config: cfg, feed: f, temporal: ents.Temporal()}
	return l.run(ctx, srv.Site())
}

// followEvery is how often the node asks for new blocks.
const followEvery = 50 * time.Millisecond

// load combines the clients and a feed.
type load struct {
	Config
	*feed
	temporal bool
	callers  []*caller
}

func (l *load) run(ctx context.Context, address string) (_ *Outcome, err error) {
	group, ctx := errgroup.WithContext(ctx)
	defer func() {
		for _, c := range l.callers {
			err = errors.Join(err, c.client.close())
		}
	}()
	for range max(l.Workers, 1) {
		c, err := l.newCaller(ctx, address)
		if err != nil {
			return nil, err
		}
		l.callers = append(l.callers, c)
	}
	cfg := l.Config.Config
	cfg.Start = time.Now().Add(50 * time.Millisecond)
	out, over := &Outcome{Follow: l.took}, make(chan struct{})
	l.from.Store(cfg.Start.Add(cfg.WarmUp).UnixNano())
	if l.Rows > 0 {
		group.Go(func() (err error) {
			out.Short, err = l.grow(ctx, over, cfg.Start)
			return err
		})
	}
	group.Go(func() (err error) {
		defer close(over)
		out.Outcome, err = pace.Loop(ctx, cfg, func(ctx context.Context, s *pace.Step) error { return l.callers[s.Worker].step(ctx, s) })
		l.to.Store(time.Now().UnixNano())
		return err
	})
	err = group.Wait()
	if seconds := time.Duration(l.to.Load() - l.from.Load()).Seconds(); seconds > 0 {
		out.Followed = float64(l.rows.Load()) / seconds
	}
	return out, err
}

// grow makes the chain grow until the calls are over, and the node follow until
// it has caught up. It reports whether the chain ended before.
func (l *load) grow(ctx context.Context, over <-chan struct{}, start time.Time) (short bool, err error) {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	l.follower.Interval = followEvery
	group.Go(func() error {
		err := l.follower.Run(ctx)
		if ctx.Err() != nil {
			err = nil
		}
		return err
	})
	group.Go(func() (err error) {
		defer stop()
		if short, err = l.feed.run(ctx, over, start, l.Rows); err == nil {
			err = l.caughtUp(ctx)
		}
		return err
	})
	err = group.Wait()
	return short, err
}
