package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/serve"
)

// serviceBenchCmd puts load on a service that runs.
type serviceBenchCmd struct {
	REST      string `help:"Address of the REST side, host:port." placeholder:"ADDRESS"`
	GRPC      string `help:"Address of the gRPC side, host:port." placeholder:"ADDRESS"`
	TokenFile string `help:"File of the token. Else $VARVE_TOKEN." type:"existingfile" placeholder:"FILE"`
	Clients   int    `help:"Clients that make their requests one after another." default:"32"`
	Each      int    `help:"Requests of each client, of each kind." default:"500"`
	Entities  int    `help:"Entities to work on. They are written first and stay." default:"5000"`
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
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PROTOCOL\tREQUEST\tCLIENTS\tREQ/S\tP50 MS\tP95 MS\tP99 MS\tMAX MS")
	if c.REST != "" {
		err = c.measure(e.ctx, w, "rest", serve.REST(c.REST, token, c.Clients))
	}
	if err == nil && c.GRPC != "" {
		client, dialErr := serve.GRPC(c.GRPC, token)
		if err = dialErr; err == nil {
			err = c.measure(e.ctx, w, "grpc", client)
		}
	}
	return errors.Join(err, w.Flush(), note(e, err))
}

// note says what the figures are.
func note(e *env, err error) error {
	if err != nil {
		return nil
	}
	_, err = fmt.Fprintln(e.stdout, "req/s as seen by the clients; every answer was checked")
	return err
}

// measure runs each kind of request by one client and by all, and closes the
// client.
func (c *serviceBenchCmd) measure(ctx context.Context, w *tabwriter.Writer, protocol string, client serve.Client) (err error) {
	defer func() { err = errors.Join(err, client.Close()) }()
	entities := c.Entities / c.Clients * c.Clients // so that no two clients share one
	if err := serve.Load(ctx, client, entities); err != nil {
		return err
	}
	r := serve.NewRequests(client, entities)
	for _, kind := range []struct {
		name    string
		request func(ctx context.Context, i int) error
	}{{"put", r.Update}, {"get", r.Get}, {"put-get", r.PutGet}} {
		for _, clients := range []int{1, c.Clients} {
			res := bench.NewResult()
			if err := res.Clients(ctx, clients, c.Each, kind.request); err != nil {
				return fmt.Errorf("%s %s: %w", protocol, kind.name, err)
			}
			latencies := res.Latency
			rate := float64(latencies.Count()) / res.Elapsed.Seconds()
			ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.3f\t%.3f\t%.3f\t%.3f\n", protocol, kind.name, clients, rate,
				ms(latencies.Quantile(50)), ms(latencies.Quantile(95)), ms(latencies.Quantile(99)), ms(latencies.Max()))
		}
	}
	return nil
}
