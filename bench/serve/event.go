package serve

import (
	"context"
	"errors"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// EventProtocols are the ways to the event store of a service.
var EventProtocols = []string{"local", "grpc"}

// EventWorkload is requests of one kind to an event store, of clients on one connection.
type EventWorkload struct {
	Name string
	enrolment.Writes
}

// EventWorkloads are all.
var EventWorkloads = []EventWorkload{
	{"append", enrolment.Writes{Clients: 1, Do: enrolment.Append}},
	{"append", enrolment.Writes{Clients: 16, Do: enrolment.Append}},
	{"append", enrolment.Writes{Clients: 128, Do: enrolment.Append}},
	{"append-if-new", enrolment.Writes{Clients: 16, Do: enrolment.AppendIfNew}},
	{"decide", enrolment.Writes{Clients: 1, Do: enrolment.Decide}},
	{"decide", enrolment.Writes{Clients: 16, Do: enrolment.Decide}},
}

// Serve serves a database that has events and measures requests in a
// loop. The head must be what they come to.
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

// Listen has a service listen until stop.
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
