package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/node/rpc"
)

// nodeCmd follows a chain and answers its clients.
type nodeCmd struct {
	followFlags
	Listen string `help:"Address for Arkiv's JSON-RPC over HTTP and WebSocket, and /metrics. It only reads. Other machines reach it only at an address that is not loopback, which needs a token, or --public." default:"127.0.0.1:8555"`
	arkivFlags
	BlockTime time.Duration `min:"1ms" max:"24h" help:"Time from one block of the chain to the next." default:"2s"`

	listenFlags
}

// Run follows and serves until it is interrupted.
func (c *nodeCmd) Run(e *env) (err error) {
	o, err := c.options(e)
	if err != nil {
		return usageError{err}
	}
	f, db, end, err := c.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	id, err := f.Client.ChainID(e.ctx)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	observe(registry, f, db)
	site := server.Site{Address: c.Listen, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
	if err := c.add(e.ctx, &o, site, f.Store, rpc.Options{ChainID: id, BlockTime: c.BlockTime, Metrics: registry}); err != nil {
		return err
	}
	srv, err := server.Listen(e.ctx, nil, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "Arkiv on %s, chain %d\n", srv.Site(), id)
	if err := c.run(e, f, srv.Run); e.ctx.Err() == nil {
		return err
	}
	return nil
}
