package client_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest"

	_ "github.com/varvedb/varve/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a database until the test ends and returns the address of gRPC.
func serve(t testing.TB, db *store.DB, so service.Options, o server.Options) string {
	t.Helper()
	s, err := service.New(context.Background(), db, so)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	o.REST = "off"
	srv, err := server.Listen(context.Background(), s, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return srv.GRPC()
}

func dial(t testing.TB, address string, o client.Options) *client.Events {
	t.Helper()
	events, err := client.Dial(address, &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, events.Close()) })
	return events
}

func newURL(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "varve.db") }

// TestConformance: the promises of the store in the process hold over gRPC too.
func TestConformance(t *testing.T) {
	storetest.RunEventStore(t, storetest.Harness{NewURL: newURL}, func(t testing.TB, db *store.DB) event.Checkpointer {
		return dial(t, serve(t, db, service.Options{}, server.Options{}), client.Options{Retry: -1})
	})
}
