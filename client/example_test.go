package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// A decision from another process: a name is registered unless it is taken.
func Example() {
	address, stop := start() // varve serve, elsewhere
	defer stop()

	events, err := client.Dial(address, &client.Options{Token: "a token for the example"})
	if err != nil {
		log.Fatal(err)
	}
	defer events.Close()
	register := func(name string) ([]uint64, error) {
		tag := event.NewTag("name", name)
		taken := event.NewProjection(event.Typed("Registered", tag), false, func(bool, *event.Sequenced) bool { return true })
		return event.Decide(context.Background(), events, event.Decision{
			Reads: []event.Projector{taken},
			Choose: func() ([]event.Event, error) {
				if taken.State {
					return nil, errors.New(name + " is taken")
				}
				return []event.Event{{Type: "Registered", Tags: []event.Tag{tag}}}, nil
			},
		})
	}
	fmt.Println(register("ann"))
	fmt.Println(register("bob"))
	fmt.Println(register("ann"))
	// Output:
	// [1] <nil>
	// [2] <nil>
	// [] ann is taken
}

// start serves a new store and returns the address of gRPC.
func start() (address string, stop func()) {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	dir, err := os.MkdirTemp("", "varve-example-")
	check(err)
	db, err := store.Open(ctx, "sqlite://"+filepath.Join(dir, "varve.db"), nil)
	check(err)
	s, err := service.New(ctx, db, service.Options{})
	check(err)
	srv, err := server.Listen(ctx, s, server.Options{REST: "off", Token: "a token for the example"})
	check(err)
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()
	return srv.GRPC(), func() {
		cancel()
		check(<-done)
		s.Close()
		check(db.Close())
		check(os.RemoveAll(dir))
	}
}
