package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
)

// followFlags are the flags of all commands that follow a chain.
type followFlags struct {
	RPC string `arg:"" name:"rpc-url" help:"JSON-RPC of an execution client of the chain: http(s)."`
	URL string `arg:"" store:"" name:"store-url" help:"Store to write; its only writer. It is made when it does not exist, and continued when it does."`

	Layout   string        `help:"Layout of a new store, ${layout} when neither this nor the URL names one." default:""`
	Adopt    bool          `help:"Continue a store that was fed without hashes, such as from a block tar of the same chain."`
	Attempts int           `min:"0" max:"1000000000" help:"How often a request is sent before the command fails; 0 for no limit." default:"0"`
	Interval time.Duration `min:"1ms" max:"24h" help:"Time between two questions for a new block." default:"1s"`
}

// followCmd follows a chain.
type followCmd struct {
	followFlags
	Until   uint64 `any:"" help:"Block after which to end; 0 for none." default:"0"`
	Once    bool   `help:"End when the chain's last block is reached."`
	Metrics string `help:"Address of /metrics; none when not given." placeholder:"ADDR"`
	JSON    bool   `help:"Print the result as JSON."`
}

// followed is the result as printed.
type followed struct {
	chain.Status
	Digest  string  `json:"digest"`
	Seconds float64 `json:"seconds"`
}

// Run follows until it is interrupted or reaches its end.
func (c *followCmd) Run(e *env) (err error) {
	f, db, end, err := c.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	f.Until, f.Once = c.Until, c.Once
	serve, err := c.metrics(e, f, db)
	if err != nil {
		return err
	}
	start := time.Now()
	err = c.run(e, f, serve)
	if endless := c.Until == 0 && !c.Once; err != nil && (!endless || e.ctx.Err() == nil) {
		return err
	}
	head, err := f.Store.Head(context.WithoutCancel(e.ctx))
	if err != nil {
		return err
	}
	res := followed{Status: f.Status(), Digest: head.Digest.String(), Seconds: time.Since(start).Seconds()}
	res.Store = head.Number
	if c.JSON {
		return printJSON(e.stdout, res)
	}
	fmt.Fprintf(e.stdout, "%d blocks, %d changes in %.1f s, %d reorganisations; block %d of %d, digest %s\n",
		res.Blocks, res.Changes, res.Seconds, res.Reorgs, res.Store, res.Chain, res.Digest)
	return nil
}

// open opens the store and creates its follower, which reports on stderr.
func (c *followFlags) open(e *env) (f *chain.Follower, db *store.DB, end func() error, err error) {
	if u, err := url.Parse(c.RPC); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, nil, usageError{errors.New("the first argument is the URL of an execution client's JSON-RPC, such as http://127.0.0.1:8545")}
	}
	db, ents, end, err := e.openForBlocks(c.URL, store.EntityOptions{Layout: c.Layout})
	if err != nil {
		return nil, nil, nil, err
	}
	client := &chain.Client{URL: c.RPC, Attempts: c.Attempts, Retried: func(err error) { fmt.Fprintln(e.stderr, "asked again:", err) }}
	return &chain.Follower{Client: client, Store: ents, Adopt: c.Adopt, Interval: c.Interval}, db, end, nil
}

// run runs the follower, with progress on stderr, and serve concurrently.
func (c *followFlags) run(e *env, f *chain.Follower, serve func(context.Context) error) error {
	bar := startBar(e.stderr, "follow", "blocks", 0)
	defer bar.Finish()
	head, err := f.Store.Head(e.ctx)
	if err != nil {
		return err
	}
	bar.Begin(int64(head.Number))
	f.Progress = func(s chain.Status) {
		goal := s.Chain
		if f.Until > 0 {
			goal = min(goal, f.Until)
		}
		bar.Aim(int64(goal), fmt.Sprintf("lag %d", s.Lag()))
		bar.Set(int64(s.Store))
	}
	ctx, cancel := context.WithCancel(e.ctx)
	served := make(chan error, 1)
	go func() {
		defer cancel() // what cannot be served ends following
		served <- serve(ctx)
	}()
	err = f.Run(ctx)
	cancel()
	if failure := <-served; failure != nil {
		return failure
	}
	return err
}

// metrics returns a function that serves only metrics until ctx is done.
func (c *followCmd) metrics(e *env, f *chain.Follower, db *store.DB) (func(context.Context) error, error) {
	if c.Metrics == "" {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	registry := prometheus.NewRegistry()
	observe(registry, f, db)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	srv, err := server.Listen(e.ctx, nil, server.Options{
		REST: "off", GRPC: "off", Site: &server.Site{Name: "metrics", Address: c.Metrics, Handler: mux, Public: true},
	})
	if err != nil {
		return nil, err
	}
	return srv.Run, nil
}

// observe registers metrics of a follower's progress and of its store.
func observe(r prometheus.Registerer, f *chain.Follower, db *store.DB) {
	service.Observe(r, db, f.Store, nil)
	gauge := func(name, help string, value func(chain.Status) float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(f.Status()) }))
	}
	counter := func(name, help string, value func(chain.Status) uint64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(f.Status())) }))
	}
	gauge("varve_follow_block", "Last block of the store.", func(s chain.Status) float64 { return float64(s.Store) })
	gauge("varve_follow_chain_block", "Last block of the chain, as far as is known.", func(s chain.Status) float64 { return float64(s.Chain) })
	gauge("varve_follow_lag_blocks", "Blocks that the store is behind.", func(s chain.Status) float64 { return float64(s.Lag()) })
	gauge("varve_follow_heard_timestamp_seconds", "When the execution client last answered.", func(s chain.Status) float64 { return float64(s.Heard) })
	counter("varve_follow_blocks_total", "Blocks applied.", func(s chain.Status) uint64 { return s.Blocks })
	counter("varve_follow_changes_total", "Entities changed.", func(s chain.Status) uint64 { return s.Changes })
	counter("varve_follow_reorganisations_total", "Reorganisations.", func(s chain.Status) uint64 { return s.Reorgs })
	counter("varve_follow_rewound_blocks_total", "Blocks taken back.", func(s chain.Status) uint64 { return s.Rewound })
}
