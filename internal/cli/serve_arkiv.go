package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
)

// arkivFlags are of Arkiv's JSON-RPC.
type arkivFlags struct {
	Arkiv       string        `help:"Address for Arkiv's JSON-RPC over HTTP and WebSocket, such as 127.0.0.1:8545; off for none. It only reads." default:"off"`
	ArkivPublic bool          `help:"Let in whoever reaches that address, without a token."`
	ArkivOrigin []string      `help:"Web page that may call, such as https://example.com; * for any. May be given several times." placeholder:"ORIGIN"`
	ChainID     uint64        `name:"chain-id" help:"Chain id that is answered." default:"1337"`
	BlockTime   time.Duration `help:"Time from one block of the chain to the next." default:"2s"`
}

// check refuses flags that do not go together.
func (f *arkivFlags) check(sealed bool) error {
	if f.Arkiv != "off" && sealed {
		return errors.New("--arkiv and keys: Arkiv's clients read payloads as they are stored, and those are sealed")
	}
	if f.BlockTime <= 0 {
		return fmt.Errorf("--block-time %s: want more than nothing", f.BlockTime)
	}
	return nil
}

// arkiv makes what answers Arkiv's JSON-RPC, nil when it is off.
func (f *arkivFlags) arkiv(ctx context.Context, db *store.DB, s *service.Service, listen server.Options) (*server.Arkiv, error) {
	if f.Arkiv == "off" {
		return nil, nil
	}
	ents, err := db.Entities(ctx, store.EntityOptions{DeferIndexes: db.ReadOnly()})
	if err != nil {
		return nil, err
	}
	handler, err := rpc.New(ctx, ents, rpc.Options{
		ChainID: f.ChainID, BlockTime: f.BlockTime, Origins: f.ArkivOrigin,
		Limits: rpc.Limits{Concurrent: listen.Limits.Concurrent},
		Log:    listen.Log, Access: listen.Access, Metrics: s.Metrics().Registry(),
	})
	if err != nil {
		return nil, fmt.Errorf("arkiv: %w", err)
	}
	return &server.Arkiv{Address: f.Arkiv, Handler: handler, Public: f.ArkivPublic}, nil
}

// served is what the line says of it that tells where things are.
func (f *arkivFlags) served(srv *server.Server) string {
	if f.Arkiv == "off" {
		return ""
	}
	return fmt.Sprintf("Arkiv on %s, ", srv.Arkiv())
}
