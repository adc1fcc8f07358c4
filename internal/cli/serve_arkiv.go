package cli

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
)

// arkivFlags say who may call Arkiv's JSON-RPC.
type arkivFlags struct {
	Public bool     `help:"Let in whoever reaches the address of Arkiv's JSON-RPC, without a token."`
	Origin []string `help:"Web page that may call, such as https://example.com; * for any. May be given several times." placeholder:"ORIGIN"`
}

// add adds Arkiv's JSON-RPC to what a server serves, as a site of which the caller gives
// address and metrics. The server closes it.
func (f *arkivFlags) add(ctx context.Context, o *server.Options, s server.Site, ents *store.Entities, r rpc.Options) error {
	if r.BlockTime <= 0 {
		return usageError{fmt.Errorf("--block-time %s: want more than nothing", r.BlockTime)}
	}
	r.Origins, r.Log, r.Access = f.Origin, o.Log, o.Access
	r.Limits = rpc.Limits{Concurrent: o.Limits.Concurrent, Memory: o.Limits.Memory, Receive: o.Timeouts.Read, Send: o.Timeouts.Write}
	handler, err := rpc.New(ctx, ents, r)
	if err != nil {
		return fmt.Errorf("arkiv: %w", err)
	}
	s.Name, s.Handler, s.Public = "Arkiv", handler, f.Public
	o.Site = &s
	return nil
}
