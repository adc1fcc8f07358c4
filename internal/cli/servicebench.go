package cli

import (
	"errors"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/lab/network"
)

// serviceBenchCmd puts load on a service that runs.
type serviceBenchCmd struct {
	recordFlags
	REST      string `help:"Address of the REST side, host:port." placeholder:"ADDRESS"`
	GRPC      string `help:"Address of the gRPC side, host:port." placeholder:"ADDRESS"`
	TokenFile string `help:"File of the token. Else $VARVE_TOKEN." type:"existingfile" placeholder:"FILE"`
	Clients   int    `min:"1" max:"100000" help:"Clients that make their requests one after another." default:"32"`
	Each      int    `min:"1" max:"1000000000" help:"Requests of each client, of each kind." default:"500"`
	Entities  int    `min:"1" max:"1000000000" help:"Entities to work on. They are written first and stay." default:"5000"`
}

// Run measures.
func (c *serviceBenchCmd) Run(e *env) error {
	if c.REST == "" && c.GRPC == "" {
		return usageError{errors.New("give --rest or --grpc, an address that varve serve prints")}
	}
	if c.Clients < 1 || c.Each < 1 || c.Entities < c.Clients {
		return usageError{errors.New("want at least one client and request, and no fewer entities than clients")}
	}
	token, err := secret(c.TokenFile, tokenVariable)
	if err != nil {
		return usageError{err}
	}
	load := &network.Running{Connect: map[string]func() (serve.Client, error){}, Clients: c.Clients, Each: c.Each, Entities: c.Entities}
	if c.REST != "" {
		load.Connect["rest"] = func() (serve.Client, error) { return serve.REST(c.REST, token, c.Clients), nil }
	}
	if c.GRPC != "" {
		load.Connect["grpc"] = func() (serve.Client, error) { return serve.GRPC(c.GRPC, token) }
	}
	found := network.RunningService(load)
	return c.show(e, found.ID, func(out string) (err error) { // in this process, since it needs no engine
		o := lab.Options{Retry: true, Seed: 1, Sitting: time.Now().UTC().Format(sittingForm)}
		for ; o.Repeat < c.Repeats && err == nil; o.Repeat++ {
			err = measureHere(e, bench.Engine{Name: "service"}, out, o, found, nil)
		}
		return err
	})
}
