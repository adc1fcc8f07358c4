package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varvedb/varve/node/rpc"
)

// nodeCmd follows a chain and answers its clients.
type nodeCmd struct {
	followFlags
	Listen    string        `help:"Address for Arkiv's JSON-RPC over HTTP and WebSocket, and /metrics. It only reads, and lets in whoever reaches it." default:"127.0.0.1:8545"`
	Origin    []string      `help:"Web page that may call, such as https://example.com; * for any. May be given several times." placeholder:"ORIGIN"`
	BlockTime time.Duration `help:"Time from one block of the chain to the next." default:"2s"`
	AccessLog bool          `help:"Log each request."`
}

// Run follows and serves until it is interrupted.
func (c *nodeCmd) Run(e *env) (err error) {
	f, ents, end, err := c.open(e)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	id, err := f.Client.ChainID(e.ctx)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	registry := prometheus.NewRegistry()
	observe(registry, f)
	opts := rpc.Options{
		ChainID: id, BlockTime: c.BlockTime, Origins: c.Origin, Metrics: registry, Log: slog.New(slog.NewTextHandler(e.stderr, nil)),
	}
	if c.AccessLog {
		opts.Access = opts.Log
	}
	handler, err := rpc.New(e.ctx, ents, opts)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	defer func() { err = errors.Join(err, handler.Close()) }()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", handler)
	on, serve, err := listen(c.Listen, mux)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	fmt.Fprintf(e.stdout, "Arkiv on %s, chain %d\n", on, id)
	if err := c.run(e, f, serve); e.ctx.Err() == nil {
		return err
	}
	return nil
}
