// Package serve measures the entity service as its clients see it: over REST and gRPC on loopback, and in process, so
// that the share of the protocol shows. Client and server share the machine. Every answer is checked.
package serve

import (
	"bytes"
	"context"
	"errors"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// Clients is the maximum number of concurrent clients. A multiple of them is
// loaded before a workload begins. With a cache of coldCache entries, a get
// hardly ever hits.
const (
	Clients  = 32
	Entities = 156 * Clients

	coldCache = 64 << 10 // bytes
)

// Protocols are the ways to use a service: in process, and over loopback.
var Protocols = []string{"local", "rest", "grpc"}

// Workload is requests of one kind.
type Workload struct {
	Name    string
	Clients int

	cache   int64 // bytes; 0 is the default
	request func(r *Requests, ctx context.Context, i int) error
}

// Workloads are all workloads.
var Workloads = []Workload{
	{"put", 1, 0, (*Requests).Update},
	{"get-warm", 1, 0, (*Requests).Get},
	{"get-cold", 1, coldCache, (*Requests).Get},
	{"put-get", 1, 0, (*Requests).PutGet},
	{"put", Clients, 0, (*Requests).Update},
	{"get-warm", Clients, 0, (*Requests).Get},
	{"get-cold", Clients, coldCache, (*Requests).Get},
	{"bulk-1000", 1, 0, (*Requests).Create},
}

// warmUp is the number of unmeasured requests of each client, which open
// connections and fill the cache.
const warmUp = 20

// Run loads n entities into an empty store, whose layout the caller has
// created, serves the store, and measures requests in a loop. Payloads are
// sealed.
func (w Workload) Run(ctx context.Context, db *store.DB, protocol string, n int, loop pace.Config) (res bench.Result, err error) {
	keys, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		return res, err
	}
	svc, err := service.New(ctx, db, service.Options{Keys: keys, CacheBytes: w.cache})
	if err != nil {
		return res, err
	}
	defer svc.Close()
	if err := Load(ctx, Local(svc), n); err != nil {
		return res, err
	}
	client, err := connect(ctx, svc, protocol)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	r := NewRequests(client, n)
	loop.Workers = w.Clients
	if _, err := r.Loop(ctx, pace.Config{Workers: w.Clients, N: int64(warmUp * w.Clients)}, w.request); err != nil {
		return res, err
	}
	res.Outcome, err = r.Loop(ctx, loop, w.request)
	return res, err
}

// connect starts a listening service and returns a client. Closing the client
// also stops listening.
func connect(ctx context.Context, svc *service.Service, protocol string) (c Client, err error) {
	if protocol == "local" {
		return Local(svc), nil
	}
	srv, stop, err := Listen(ctx, svc, server.Options{})
	if err != nil {
		return c, err
	}
	if protocol == "rest" {
		c = REST(srv.REST(), Clients)
	} else if c, err = GRPC(srv.GRPC()); err != nil {
		return c, errors.Join(err, stop())
	}
	leave := c.Close
	c.Close = func() error { return errors.Join(leave(), stop()) }
	return c, nil
}

// EventProtocols are the ways to use the event store of a service.
var EventProtocols = []string{"local", "grpc"}

// EventWorkload is a kind of request to an event store, by clients on one
// connection.
type EventWorkload struct {
	Name string
	enrolment.Writes
}

// EventWorkloads are all workloads.
var EventWorkloads = []EventWorkload{
	{"append", enrolment.Writes{Clients: 1, Do: enrolment.Append}},
	{"append", enrolment.Writes{Clients: 16, Do: enrolment.Append}},
	{"append", enrolment.Writes{Clients: 128, Do: enrolment.Append}},
	{"append-if-new", enrolment.Writes{Clients: 16, Do: enrolment.AppendIfNew}},
	{"decide", enrolment.Writes{Clients: 1, Do: enrolment.Decide}},
	{"decide", enrolment.Writes{Clients: 16, Do: enrolment.Decide}},
}

// Serve serves a database with events and measures requests in a loop.
// Afterwards the log's head must equal the number of appended events.
func (w EventWorkload) Serve(ctx context.Context, db *store.DB, protocol string, loop pace.Config) (res bench.Result, err error) {
	svc, err := service.New(ctx, db, service.Options{})
	if err != nil {
		return res, err
	}
	defer svc.Close()
	var events event.Store = svc.Events()
	if protocol == "grpc" {
		srv, stop, err := Listen(ctx, svc, server.Options{REST: "off"})
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		remote, err := client.Dial(srv.GRPC(), nil)
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, remote.Close()) }()
		events = remote
	}
	if res, err := w.Run(ctx, events, pace.Config{N: int64(warmUp * w.Clients)}); err != nil {
		return res, err
	}
	return w.Run(ctx, events, loop)
}

// Listen makes a service listen until stop is called.
func Listen(ctx context.Context, svc *service.Service, o server.Options) (srv *server.Server, stop func() error, err error) {
	srv, err = server.Listen(ctx, svc, o)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	return srv, func() error {
		cancel()
		return <-done
	}, nil
}
